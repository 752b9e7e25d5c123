package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func startAdmin(t *testing.T) *admin {
	t.Helper()
	a, err := listenAdmin(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- a.serve() }()
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return a
}

// get asks the admin listener, under a host name of its own if one is given.
func get(t *testing.T, address, path, host string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestHealth(t *testing.T) {
	a := startAdmin(t)
	address := a.listener.Addr().String()
	if code, _ := get(t, address, "/healthz", ""); code != http.StatusServiceUnavailable {
		t.Errorf("before serving: %d", code)
	}
	a.serving.Store(true)
	if code, body := get(t, address, "/healthz", ""); code != http.StatusOK || body != "serving\n" {
		t.Errorf("serving: %d %q", code, body)
	}
	if code, _ := get(t, address, "/healthz", "localhost"); code != http.StatusOK {
		t.Errorf("by name: %d", code)
	}
}

func TestProfiles(t *testing.T) {
	address := startAdmin(t).listener.Addr().String()
	for path, part := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/cmdline": "test", "/debug/pprof/symbol": "num_symbols",
	} {
		if code, body := get(t, address, path, ""); code != http.StatusOK || !strings.Contains(body, part) {
			t.Errorf("%s: %d %.100q", path, code, body)
		}
	}
	if code, _ := get(t, address, "/metrics", ""); code != http.StatusNotFound {
		t.Errorf("/metrics: %d", code)
	}
}

func TestAdminRefusesOtherHosts(t *testing.T) {
	address := startAdmin(t).listener.Addr().String()
	for _, host := range []string{"rebound.example.org", "rebound.example.org:8816", "192.0.2.1"} {
		if code, _ := get(t, address, "/debug/pprof/", host); code != http.StatusForbidden {
			t.Errorf("%s: %d", host, code)
		}
	}
}

func TestAdminListenErrors(t *testing.T) {
	taken := startAdmin(t).listener.Addr().String()
	for name, address := range map[string]string{"taken": taken, "all interfaces": ":0", "nonsense": "127.0.0.1"} {
		if a, err := listenAdmin(context.Background(), address); err == nil {
			t.Errorf("%s: bound to %s", name, a.listener.Addr())
		} else if !strings.HasPrefix(err.Error(), "admin_listen: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
