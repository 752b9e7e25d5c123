package deltalog

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"contrail/tablecore/tableerr"
)

// ResolvePath returns the file that a path of the log names, relative to the
// table's directory: percent-decoded, without empty and "." parts. A path with
// a scheme, an absolute one, one that climbs with "..", one into the log or
// Contrail's own directory, and one that cannot be decoded is
// *tableerr.Unsupported naming it. Symbolic links are the store's affair.
func ResolvePath(path string) (string, error) {
	decoded, err := url.PathUnescape(path)
	if err != nil || !utf8.ValidString(decoded) || strings.ContainsRune(decoded, 0) {
		return "", &tableerr.Unsupported{Path: path, Msg: "the table refers to " + quoted(path) + ", which cannot be decoded"}
	}
	if hasScheme(path) || strings.HasPrefix(decoded, "/") {
		return "", &tableerr.Unsupported{Path: path}
	}
	parts := strings.Split(decoded, "/")
	kept := parts[:0]
	for _, part := range parts {
		switch part {
		case "", ".":
		case "..":
			return "", &tableerr.Unsupported{Path: path}
		default:
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 || kept[0] == "_delta_log" || kept[0] == "_contrail" {
		return "", &tableerr.Unsupported{Path: path, Msg: "the table refers to " + quoted(path) + ", which is no place for data"}
	}
	return strings.Join(kept, "/"), nil
}

// EncodePath returns the log's text for a file of the table, the inverse of
// ResolvePath: everything but the unreserved characters of RFC 3986, "/" and
// "=" is percent-encoded.
func EncodePath(file string) string {
	const hex = "0123456789ABCDEF"
	plain := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/=", c) >= 0
	}
	var out []byte
	for i := range len(file) {
		if c := file[i]; plain(c) {
			out = append(out, c)
		} else {
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}

// hasScheme tells whether a URI reference begins with a scheme (RFC 3986, 3.1).
func hasScheme(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return c == ':' && i > 0
		}
	}
	return false
}

// logicalFile returns what identifies the file of a path in replay, and
// whether the path is refused. A refused path is still an identity, so that a
// file that was added and removed again does no harm; the spellings of a local
// absolute path are one.
func logicalFile(path string) (file string, refused bool) {
	if file, err := ResolvePath(path); err == nil {
		return file, false
	}
	if rest, local := strings.CutPrefix(path, "file:"); local {
		path = "/" + strings.TrimLeft(rest, "/")
	}
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	// An identity that no decoded relative path can have.
	return "\x00" + path, true
}

// quoted is a hostile text for a message: quoted and not too long.
func quoted(text string) string {
	return strconv.Quote(clip([]byte(text)))
}
