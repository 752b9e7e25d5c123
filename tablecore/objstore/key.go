package objstore

import "strings"

// The bounds of a key. They are those of common file systems, so that a key that one driver takes is one that all take.
const (
	maxKeyBytes  = 4096
	maxPartBytes = 255
)

// CheckKey returns a *KeyError unless key can name an object or a directory: parts of 1 to 255 bytes joined by single
// slashes, at most 4096 bytes in all, no part "." or "..", no NUL byte, no slash at either end. Other bytes are free.
func CheckKey(key string) error {
	if key == "" {
		return &KeyError{Key: key, Reason: "empty"}
	}
	return checkParts(key, key)
}

// CheckWritable returns a *KeyError unless CheckKey allows key and it does not lie among the temporary files.
func CheckWritable(key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if InTempDir(key) {
		return &KeyError{Key: key, Reason: "lies in the directory of temporary files"}
	}
	return nil
}

// CheckPrefix returns a *KeyError unless some key can begin with prefix: "", a key, a key with a slash behind it.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return checkParts(prefix, strings.TrimSuffix(prefix, "/"))
}

// InTempDir reports whether key lies in the directory of temporary files of the store or of a sub-store.
func InTempDir(key string) bool {
	return strings.HasPrefix(key, TempDir+"/") || strings.Contains(key, "/"+TempDir+"/")
}

// checkParts checks the slash-separated text of a name that was given as whole.
func checkParts(whole, text string) error {
	if len(whole) > maxKeyBytes {
		return &KeyError{Key: whole, Reason: "longer than 4096 bytes"}
	}
	if strings.IndexByte(text, 0) >= 0 {
		return &KeyError{Key: whole, Reason: "has a NUL byte"}
	}
	for rest, more := text, true; more; {
		var part string
		part, rest, more = strings.Cut(rest, "/")
		switch {
		case part == "":
			return &KeyError{Key: whole, Reason: "has an empty part"}
		case part == "." || part == "..":
			return &KeyError{Key: whole, Reason: "has a part that is . or .."}
		case len(part) > maxPartBytes:
			return &KeyError{Key: whole, Reason: "has a part of more than 255 bytes"}
		}
	}
	return nil
}
