package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkAddress accepts HOST:PORT with a numeric port. An empty host means all
// interfaces.
func checkAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("HOST:PORT is due: %w", err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("the port is a number from 0 to 65535")
	}
	return nil
}

// checkAdminAddress accepts an address on loopback, for profiles tell what the
// process holds, or none.
func checkAdminAddress(s string) error {
	if s == "" {
		return nil
	}
	if err := checkAddress(s); err != nil {
		return err
	}
	if !IsLoopback(s) {
		return errors.New("the admin listener is bound to loopback only, such as 127.0.0.1 or [::1]")
	}
	return nil
}

// IsLoopback tells whether HOST:PORT can be reached from this machine only.
// Names other than localhost count as not.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkWarehouse accepts a directory's path.
func checkWarehouse(s string) error {
	switch {
	case s == "":
		return errors.New("the path of a directory is due")
	case strings.Contains(s, "://"):
		return errors.New("only a directory of the local disk is supported by this version")
	case strings.ContainsRune(s, 0):
		return errors.New("a path has no NUL")
	}
	return nil
}

// checkScratch accepts a directory's path, or none.
func checkScratch(s string) error {
	if s == "" {
		return nil
	}
	return checkWarehouse(s)
}

// checkLocation accepts a Flight location.
func checkLocation(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || !slices.Contains([]string{"grpc", "grpc+tcp", "grpc+tls"}, u.Scheme) {
		return errors.New("locations are grpc://HOST:PORT, grpc+tcp://HOST:PORT or grpc+tls://HOST:PORT")
	}
	return nil
}

func oneOf(words ...string) func(string) error {
	return func(s string) error {
		if slices.Contains(words, s) {
			return nil
		}
		return fmt.Errorf("one of %s is due", strings.Join(words, ", "))
	}
}
