package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"contrail/cmd/internal/config"
	"contrail/cmd/internal/flightclient"
	"contrail/cmd/internal/serving"
	"contrail/tablecore/objstore"
)

const defaultServer = "127.0.0.1:8815"

// Environment variables. The daemon, whose own begin alike, knows them.
const (
	envServer    = "CONTRAIL_SERVER"
	envWarehouse = "CONTRAIL_WAREHOUSE"
	envToken     = "CONTRAIL_TOKEN"
)

// connection is what the flags say about where the tables are.
type connection struct {
	server, warehouse string
	token, tokenFile  string
	tlsCA             string
	tlsCert, tlsKey   string
	tlsSkipVerify     bool
	incidents         incidentLog
}

func (a *app) addConnectionFlags(flags *pflag.FlagSet) {
	c := &a.connection
	flags.StringVar(&c.server, "server", "", "service to talk to: HOST:PORT, grpc://HOST:PORT or grpc+tls://HOST:PORT (CONTRAIL_SERVER)")
	flags.StringVar(&c.warehouse, "warehouse", "", "directory of tables to work on without a service (CONTRAIL_WAREHOUSE)")
	flags.StringVar(&c.token, "token", "", "bearer token; other users can see a command line, so prefer --token-file or CONTRAIL_TOKEN")
	flags.StringVar(&c.tokenFile, "token-file", "", "file that holds the bearer token")
	flags.StringVar(&c.tlsCA, "tls-ca", "", "file of the certificate authority that vouches for the service, in place of the system's")
	flags.StringVar(&c.tlsCert, "tls-cert", "", "file of the certificate to show to the service")
	flags.StringVar(&c.tlsKey, "tls-key", "", "file of the key of --tls-cert")
	flags.BoolVar(&c.tlsSkipVerify, "tls-skip-verify", false, "do not look whose certificate the service shows")
}

// session is a connection with what it keeps open.
type session struct {
	*flightclient.Client
	embedded *serving.Embedded // nil for a server
}

func (s *session) close() error {
	err := s.Client.Close()
	if s.embedded != nil {
		err = errors.Join(err, s.embedded.Close())
	}
	return err
}

// connectOptions say what a command needs of its connection.
type connectOptions struct {
	create bool // make the warehouse's directory when it is not there
}

// connect opens the warehouse, or prepares the connection to the server, which
// is made by the first call.
func (a *app) connect(ctx context.Context, o connectOptions) (*session, error) {
	server, warehouse, err := a.target()
	if err != nil {
		return nil, err
	}
	if warehouse != "" {
		return a.connectEmbedded(ctx, warehouse, o)
	}
	options, err := a.dialOptions(server)
	if err != nil {
		return nil, err
	}
	client, err := flightclient.Dial(options)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return &session{Client: client}, nil
}

// target chooses between server and warehouse: flags before the environment.
func (a *app) target() (server, warehouse string, err error) {
	if a.server == "" && a.warehouse == "" {
		server, warehouse = a.environ(envServer), a.environ(envWarehouse)
		if server != "" && warehouse != "" {
			return "", "", usagef("%s and %s are both set; say which is meant with --server or --warehouse", envServer, envWarehouse)
		}
	} else if server, warehouse = a.server, a.warehouse; server != "" && warehouse != "" {
		return "", "", usagef("--server and --warehouse do not go together")
	}
	if server == "" && warehouse == "" {
		server = defaultServer
	}
	return server, warehouse, nil
}

// errNoWarehouse says that the directory of --warehouse is not there.
var errNoWarehouse = errors.New("there is no such warehouse")

func (a *app) connectEmbedded(ctx context.Context, warehouse string, o connectOptions) (*session, error) {
	if info, err := os.Stat(warehouse); err == nil && !info.IsDir() {
		return nil, usagef("the warehouse %s is no directory", warehouse)
	}
	c := config.Defaults()
	c.Warehouse = warehouse
	embedded, err := serving.Embed(ctx, c, a.incidents.logger(), o.create)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", errNoWarehouse, warehouse)
	}
	if err != nil {
		return nil, err
	}
	client, err := flightclient.Dial(flightclient.Options{Address: "embedded", Dialer: embedded.DialOption()})
	if err != nil {
		return nil, errors.Join(err, embedded.Close())
	}
	return &session{Client: client, embedded: embedded}, nil
}

// dialOptions reads a server's address and what goes with it.
func (a *app) dialOptions(server string) (o flightclient.Options, err error) {
	address, encrypted, err := parseServer(server)
	if err != nil {
		return o, err
	}
	o.Address = address
	if o.TLS, err = a.tlsConfig(encrypted); err != nil {
		return o, err
	}
	if o.Token, err = a.readToken(); err != nil {
		return o, err
	}
	if o.Token != "" && !encrypted && !config.IsLoopback(address) {
		return o, usagef("a token is not sent in plain text beyond this machine; use a grpc+tls:// URL")
	}
	return o, nil
}

// parseServer takes HOST:PORT or a URL apart.
func parseServer(server string) (address string, encrypted bool, err error) {
	address = server
	if strings.Contains(server, "://") {
		u, err := url.Parse(server)
		if err != nil {
			return "", false, usagef("--server: this is no URL") // which may hold a password
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
			return "", false, usagef("--server takes a URL of scheme, host and port only")
		}
		switch u.Scheme {
		case "grpc", "grpc+tcp":
		case "grpc+tls":
			encrypted = true
		default:
			return "", false, usagef("--server: the scheme %s is neither grpc nor grpc+tls", u.Scheme)
		}
		address = u.Host
	}
	if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
		return "", false, usagef("--server: %q is not HOST:PORT", address)
	}
	return address, encrypted, nil
}

func (a *app) readToken() (string, error) {
	token := a.token
	if a.tokenFile != "" {
		if token != "" {
			return "", usagef("--token and --token-file do not go together")
		}
		raw, err := os.ReadFile(a.tokenFile)
		if err != nil {
			return "", usagef("--token-file: %w", err)
		}
		if token = strings.TrimSpace(string(raw)); token == "" {
			return "", usagef("--token-file: %s is empty", a.tokenFile)
		}
	}
	if token == "" {
		token = strings.TrimSpace(a.environ(envToken))
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usagef("the token has a character that no token has")
	}
	return token, nil
}

// tlsConfig is nil for a plain connection, which takes no options of TLS.
func (a *app) tlsConfig(encrypted bool) (*tls.Config, error) {
	if !encrypted {
		if a.tlsCA != "" || a.tlsCert != "" || a.tlsKey != "" || a.tlsSkipVerify {
			return nil, usagef("the options --tls-… need a server with a grpc+tls:// URL")
		}
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: a.tlsSkipVerify}
	if a.tlsCA != "" {
		pem, err := os.ReadFile(a.tlsCA)
		if err != nil {
			return nil, usagef("--tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca: %s holds no certificate", a.tlsCA)
		}
	}
	if (a.tlsCert == "") != (a.tlsKey == "") {
		return nil, usagef("--tls-cert and --tls-key go together")
	}
	if a.tlsCert != "" {
		pair, err := tls.LoadX509KeyPair(a.tlsCert, a.tlsKey)
		if err != nil {
			return nil, usagef("--tls-cert: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// interrupted tells whether the end of ctx is why something failed. What is
// unclear stays so.
func interrupted(ctx context.Context, err error) error {
	if flightclient.Unclear(err) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}
