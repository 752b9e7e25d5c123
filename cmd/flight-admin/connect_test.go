package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"contrail/cmd/internal/flightclient"
)

// certificates are those of an authority, of the service and of a client.
type certificates struct {
	pool                  *x509.CertPool
	ca                    string // file
	clientCert, clientKey string
	serverPair            tls.Certificate
	authority             *x509.Certificate
	authorityKey          *ecdsa.PrivateKey
	folder                string
	serial                int64
	notBefore, notAfter   time.Time
}

func makeCertificates(t *testing.T) *certificates {
	t.Helper()
	c := &certificates{folder: t.TempDir(), pool: x509.NewCertPool(), notBefore: time.Now().Add(-time.Hour), notAfter: time.Now().Add(time.Hour)}
	var err error
	if c.authorityKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: c.notBefore, NotAfter: c.notAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &c.authorityKey.PublicKey, c.authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	if c.authority, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	c.pool.AddCert(c.authority)
	c.ca = c.file(t, "ca.pem", "CERTIFICATE", der)
	serverCert, serverKey := c.issue(t, "server", x509.ExtKeyUsageServerAuth)
	if c.serverPair, err = tls.LoadX509KeyPair(serverCert, serverKey); err != nil {
		t.Fatal(err)
	}
	c.clientCert, c.clientKey = c.issue(t, "client", x509.ExtKeyUsageClientAuth)
	return c
}

func (c *certificates) file(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(c.folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *certificates) issue(t *testing.T, name string, use x509.ExtKeyUsage) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.serial++
	template := &x509.Certificate{SerialNumber: big.NewInt(c.serial + 1), Subject: pkix.Name{CommonName: name}, NotBefore: c.notBefore, NotAfter: c.notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, c.authority, &key.PublicKey, c.authorityKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return c.file(t, name+".pem", "CERTIFICATE", der), c.file(t, name+".key", "EC PRIVATE KEY", keyDER)
}

const secret = "s3cr3t-token"

// guarded lets only calls with the token through.
func guarded(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	given, _ := metadata.FromIncomingContext(stream.Context())
	if got := given.Get("authorization"); len(got) != 1 || got[0] != "Bearer "+secret {
		return status.Error(codes.Unauthenticated, "the token is missing or wrong")
	}
	return handle(server, stream)
}

// A service that asks for a certificate and a token, and all ways to have or to
// lack them.
func TestTLSAndTokens(t *testing.T) {
	c := makeCertificates(t)
	server := &tls.Config{Certificates: []tls.Certificate{c.serverPair}, ClientCAs: c.pool, ClientAuth: tls.VerifyClientCertIfGiven}
	fake := &fakeServer{err: status.Error(codes.PermissionDenied, "reached")}
	address := startFake(t, fake, grpc.Creds(credentials.NewTLS(server)), grpc.StreamInterceptor(guarded))
	strict := server.Clone()
	strict.ClientAuth = tls.RequireAndVerifyClientCert
	strictAddress := startFake(t, fake, grpc.Creds(credentials.NewTLS(strict)), grpc.StreamInterceptor(guarded))
	tokenFile := write(t, "token", secret+"\n")
	environ := map[string]string{envToken: secret}
	for _, one := range []struct {
		args    []string
		environ map[string]string
		status  int
		part    string
	}{
		{[]string{"--server", "grpc+tls://" + address, "--tls-ca", c.ca, "--token", secret}, nil, exitDenied, "PERMISSION_DENIED: reached"},
		{[]string{"--server", "grpc+tls://" + address, "--tls-ca", c.ca, "--token-file", tokenFile}, nil, exitDenied, "PERMISSION_DENIED: reached"},
		{[]string{"--server", "grpc+tls://" + address, "--tls-ca", c.ca}, environ, exitDenied, "PERMISSION_DENIED: reached"},
		{[]string{"--server", "grpc+tls://" + address, "--tls-skip-verify"}, environ, exitDenied, "PERMISSION_DENIED: reached"},
		{[]string{"--tls-ca", c.ca}, map[string]string{envToken: secret, envServer: "grpc+tls://" + address}, exitDenied, "PERMISSION_DENIED: reached"},
		{[]string{"--server", "grpc+tls://" + strictAddress, "--tls-ca", c.ca, "--tls-cert", c.clientCert, "--tls-key", c.clientKey}, environ, exitDenied, "PERMISSION_DENIED: reached"},
		{[]string{"--server", "grpc+tls://" + address, "--tls-ca", c.ca, "--token", "wrong"}, nil, exitDenied, "UNAUTHENTICATED: the token is missing or wrong"},
		{[]string{"--server", "grpc+tls://" + address, "--tls-ca", c.ca}, nil, exitDenied, "UNAUTHENTICATED"},
		{[]string{"--server", "grpc+tls://" + address}, environ, exitUnavailable, "certificate signed by unknown authority"},
		{[]string{"--server", "grpc+tls://" + strictAddress, "--tls-ca", c.ca}, environ, exitUnavailable, "UNREACHABLE"},
		{[]string{"--server", "grpc://" + address}, environ, exitUnavailable, "UNREACHABLE"},
	} {
		o := execute(t, nil, one.environ, append([]string{"tables"}, one.args...)...)
		if o.status != one.status || !strings.Contains(o.stderr, one.part) {
			t.Errorf("%v: %+v", one.args, o)
		}
		if strings.Contains(o.stdout+o.stderr, secret) {
			t.Errorf("%v: the token is printed", one.args)
		}
	}
}

func TestConnectionFlagsThatCannotBeMeant(t *testing.T) {
	c := makeCertificates(t)
	empty := write(t, "empty", "\n")
	for _, one := range []struct {
		args    string
		environ map[string]string
		part    string
	}{
		{"--server a:1 --warehouse b", nil, "--server and --warehouse do not go together"},
		{"", map[string]string{envServer: "a:1", envWarehouse: "b"}, "CONTRAIL_SERVER and CONTRAIL_WAREHOUSE are both set"},
		{"--server localhost", nil, `"localhost" is not HOST:PORT`},
		{"--server :8815", nil, `":8815" is not HOST:PORT`},
		{"--server http://a:1", nil, "the scheme http is neither grpc nor grpc+tls"},
		{"--server grpc://u:" + secret + "@a:1", nil, "--server takes a URL of scheme, host and port only"},
		{"--server grpc://a:1/path", nil, "--server takes a URL of scheme, host and port only"},
		{"--server grpc://%zz" + secret, nil, "--server: this is no URL"},
		{"--server grpc://a:1 --token " + secret, nil, "a token is not sent in plain text beyond this machine"},
		{"--server a:1 --token x --token-file y", nil, "--token and --token-file do not go together"},
		{"--server a:1 --token-file nowhere", nil, "--token-file: open nowhere"},
		{"--server a:1 --token-file " + empty, nil, "is empty"},
		{"--server grpc+tls://a:1", map[string]string{envToken: "two words"}, "the token has a character that no token has"},
		{"--server a:1 --tls-ca " + c.ca, nil, "the options --tls-… need a server with a grpc+tls:// URL"},
		{"--server grpc+tls://a:1 --tls-ca nowhere", nil, "--tls-ca: open nowhere"},
		{"--server grpc+tls://a:1 --tls-ca " + c.clientKey, nil, "holds no certificate"},
		{"--server grpc+tls://a:1 --tls-cert " + c.clientCert, nil, "--tls-cert and --tls-key go together"},
		{"--server grpc+tls://a:1 --tls-cert " + c.clientCert + " --tls-key " + c.ca, nil, "--tls-cert: "},
	} {
		o := execute(t, nil, one.environ, append([]string{"tables"}, strings.Fields(one.args)...)...)
		if o.status != exitInvalid || !strings.Contains(o.stderr, one.part) {
			t.Errorf("%s: %+v", one.args, o)
		}
		if strings.Contains(o.stderr, secret) {
			t.Errorf("%s: the token is printed", one.args)
		}
	}
}

// Flags come before the environment, and both before the default.
func TestTarget(t *testing.T) {
	for _, c := range []struct {
		server, warehouse string
		environ           map[string]string
		want              string
	}{
		{"", "", nil, defaultServer + " "},
		{"a:1", "", map[string]string{envServer: "b:1", envWarehouse: "w"}, "a:1 "},
		{"", "v", map[string]string{envServer: "b:1", envWarehouse: "w"}, " v"},
		{"", "", map[string]string{envServer: "b:1"}, "b:1 "},
		{"", "", map[string]string{envWarehouse: "w"}, " w"},
	} {
		a := &app{surroundings: surroundings{environ: func(name string) string { return c.environ[name] }}}
		a.server, a.warehouse = c.server, c.warehouse
		server, warehouse, err := a.target()
		if got := server + " " + warehouse; err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// An INTERNAL error of an embedded service tells its cause, as there is no log
// to look into.
func TestEmbeddedIncident(t *testing.T) {
	a := &app{surroundings: surroundings{environ: func(string) string { return "" }}}
	logger := a.incidents.logger()
	logger.Error().Str("incident", "17").Err(context.DeadlineExceeded).Msg("call failed")
	logger.Warn().Str("incident", "18").Msg("no error")
	f := failure{token: tokenInternal, text: "look there", hint: "look", fields: nil}
	a.addIncident(&f)
	if f.text != "look there" {
		t.Errorf("got %+v", f)
	}
	f.fields = append(f.fields, fieldOfIncident("17"))
	a.addIncident(&f)
	if f.line != "INTERNAL: context deadline exceeded" || f.hint != "" {
		t.Errorf("got %+v", f)
	}
}

func fieldOfIncident(id string) flightclient.Field {
	return flightclient.Field{Key: "incident", Value: json.RawMessage(strconv.Quote(id))}
}
