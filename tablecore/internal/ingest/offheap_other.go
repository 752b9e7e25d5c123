//go:build !unix

package ingest

func mapPages(int) []byte { return nil }

func unmapPages([]byte) bool { return false }
