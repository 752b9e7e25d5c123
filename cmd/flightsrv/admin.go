package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"contrail/cmd/internal/config"
)

// admin answers health checks and profiles on loopback.
type admin struct {
	server   http.Server
	listener net.Listener
	// serving is what /healthz tells.
	serving atomic.Bool
}

// listenAdmin binds the admin listener. It refuses an address beyond loopback,
// also one that a name turned out to stand for.
func listenAdmin(ctx context.Context, address string) (*admin, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("admin_listen: %w", err)
	}
	if bound := listener.Addr().String(); !config.IsLoopback(bound) {
		return nil, errors.Join(fmt.Errorf("admin_listen: %s is %s, which is beyond loopback", address, bound), listener.Close())
	}
	a := &admin{listener: listener}
	a.server = http.Server{Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second}
	return a, nil
}

// serve answers until close. It returns nil then.
func (a *admin) serve() error {
	if err := a.server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin listener: %w", err)
	}
	return nil
}

// close ends the listener and all its connections.
func (a *admin) close() error { return a.server.Close() }

func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if a.serving.Load() {
			_, _ = w.Write([]byte("serving\n")) // the client may have gone away
			return
		}
		http.Error(w, "not serving", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A page in a browser on this machine could reach loopback under a name
		// of its own; its requests carry that name.
		if !config.IsLoopback(withPort(r.Host)) {
			http.Error(w, "this listener is for loopback only", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// withPort adds a port to a Host header that has none.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, "80")
}
