package tabledef

import "strings"

// FollowsRollback says whether a rollback brings back what a property was at
// its target. How long things are kept, and Delta's own keys that Contrail
// manages, stay as they are.
func FollowsRollback(key string) bool {
	switch key {
	case KeyKeepUntil, KeyRetainSnapshot, KeyRetention:
		return false
	}
	if !strings.HasPrefix(key, "delta.") {
		return true
	}
	p := registered[key]
	return p != nil && p.Level == Settable
}
