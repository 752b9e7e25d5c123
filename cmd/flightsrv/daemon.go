package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/rs/zerolog"

	"contrail/cmd/internal/config"
	"contrail/cmd/internal/serving"
	"contrail/flightsrv"
	"contrail/tablecore"
)

// daemon is one run of the server.
type daemon struct {
	config    config.Config
	log       zerolog.Logger
	readyFile string // "" for none
	signals   chan os.Signal
}

// errCut says that calls were cut, which is no failure of the server's own.
var errCut = &statusError{exitCut, errors.New("stopped; calls were cut")}

// run serves until a signal or a failure. Everything that it started has ended
// when it returns.
func (d *daemon) run(ctx context.Context) (err error) {
	defer func() {
		var withStatus *statusError
		if err != nil && !errors.As(err, &withStatus) {
			err = &statusError{exitFailed, err}
		}
	}()
	if d.readyFile != "" {
		if err := removeReadyFile(d.readyFile); err != nil {
			return err
		}
	}
	warehouse, err := serving.OpenWarehouse(ctx, d.config, d.log, true)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := warehouse.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("close the warehouse: %w", closeErr))
		}
	}()
	return d.serve(ctx, warehouse)
}

// serve binds the listeners, answers until a signal or a failure and stops.
func (d *daemon) serve(ctx context.Context, warehouse *tablecore.Warehouse) error {
	server, err := flightsrv.New(serving.Options(d.config, warehouse, d.log))
	if err != nil {
		return fmt.Errorf("start the Flight service: %w", err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", d.config.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	var side *admin
	if d.config.AdminListen != "" {
		if side, err = listenAdmin(ctx, d.config.AdminListen); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	services := serviceGroup{ended: make(chan error, 2)}
	services.start(func() error { return server.Serve(listener) })
	if side != nil {
		services.start(side.serve)
	}
	trash := startSweeper(ctx, sweepInterval, warehouse.SweepTrash, d.log)
	err = d.announce(listener.Addr().String(), side)
	if err == nil {
		err = d.awaitEnd(ctx, &services)
	}
	cut := d.stop(ctx, server, side, err == nil)
	trash.stop()
	return errors.Join(err, services.wait(), cut)
}

// announce tells that calls are accepted: the listener is bound, so a client
// that connects from now on is served.
func (d *daemon) announce(address string, side *admin) error {
	entry := d.log.Info().Str("address", address).Str("warehouse", d.config.Warehouse)
	if side != nil {
		side.serving.Store(true)
		entry = entry.Stringer("admin_address", side.listener.Addr())
	}
	entry.Msg("listening")
	if !config.IsLoopback(address) {
		d.log.Warn().Str("address", address).Msg("anyone who reaches this address may read and write: this version knows neither TLS nor authentication")
	}
	if d.readyFile == "" {
		return nil
	}
	return writeReadyFile(d.readyFile, address)
}

// awaitEnd waits for a signal, the end of ctx or a service that fails.
func (d *daemon) awaitEnd(ctx context.Context, services *serviceGroup) error {
	select {
	case s := <-d.signals:
		d.log.Info().Stringer("signal", s).Dur("grace", d.config.DrainGrace).Msg("draining")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-services.ended:
		services.running--
		if err == nil {
			err = errors.New("a listener ended by itself")
		}
		return err
	}
}

// stop ends both services: the Flight service after a drain, or at once when
// something failed. It returns errCut when calls were cut, and what kept files
// and listeners from being given back.
func (d *daemon) stop(ctx context.Context, server *flightsrv.Server, side *admin, graceful bool) error {
	var errs []error
	if side != nil {
		side.serving.Store(false)
	}
	if d.readyFile != "" {
		errs = append(errs, removeReadyFile(d.readyFile))
	}
	if !graceful {
		server.Close()
	} else if err := d.drain(ctx, server); err != nil {
		d.log.Warn().Err(err).Msg("cut running calls")
		errs = append(errs, errCut)
	}
	if side != nil {
		errs = append(errs, side.close())
	}
	d.log.Info().Msg("stopped")
	return errors.Join(errs...)
}

// drain lets running calls end within the grace period or until the second
// signal. It returns why calls were cut, or nil.
func (d *daemon) drain(ctx context.Context, server *flightsrv.Server) error {
	grace, cancel := context.WithTimeoutCause(ctx, d.config.DrainGrace, errors.New("drain_grace is over"))
	defer cancel()
	grace, cut := context.WithCancelCause(grace)
	drained := make(chan struct{})
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case s := <-d.signals:
			cut(fmt.Errorf("second signal: %s", s))
		case <-drained:
		}
	}()
	err := server.Drain(grace)
	close(drained)
	<-watching
	cut(nil)
	return err
}

// serviceGroup is what runs beside the main goroutine.
type serviceGroup struct {
	ended   chan error
	running int
}

func (g *serviceGroup) start(serve func() error) {
	g.running++
	go func() { g.ended <- serve() }()
}

// wait waits for all and returns what they failed with.
func (g *serviceGroup) wait() error {
	var errs []error
	for ; g.running > 0; g.running-- {
		errs = append(errs, <-g.ended)
	}
	return errors.Join(errs...)
}
