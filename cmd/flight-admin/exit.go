package main

import "contrail/tablecore/tableerr"

// Exit statuses. A script may rely on them.
const (
	exitOK          = 0
	exitInternal    = 1
	exitInvalid     = 2
	exitNotFound    = 3
	exitExists      = 4
	exitConflict    = 5
	exitRefused     = 6
	exitUnavailable = 7
	exitUnknown     = 8
	exitDamaged     = 9
	exitDenied      = 10
	exitFindings    = 11
	exitInterrupted = 130
)

// exitStatus is what one status means.
type exitStatus struct {
	code    int
	meaning string
}

var exitStatuses = []exitStatus{
	{exitOK, "done"},
	{exitInternal, "an error inside, or one that no other status describes"},
	{exitInvalid, "the command line, the request or the input is not valid; nothing was changed"},
	{exitNotFound, "there is no such warehouse, table or version"},
	{exitExists, "the table, or other rows under this request id, are there already"},
	{exitConflict, "the table's version is another than the expected one; read it again"},
	{exitRefused, "the table's rules refuse it: a filled interval, a duplicate, its format, a feature that it lacks"},
	{exitUnavailable, "the service cannot be reached, has no room or no time; nothing was changed, but for a part of a vacuum or an upgrade; repeating is safe"},
	{exitUnknown, "the answer was lost on the way: it may have happened or not; a repetition with the same request id is safe"},
	{exitDamaged, "stored data are damaged or missing"},
	{exitDenied, "the token is missing, wrong, or not allowed to do this"},
	{exitFindings, "check has found errors"},
	{exitInterrupted, "interrupted; nothing was changed, but for a part of a vacuum or an upgrade, which a repetition completes"},
}

// Tokens that do not come from the table core.
const (
	tokenInternal        = "INTERNAL"          // of the service
	tokenUnauthenticated = "UNAUTHENTICATED"   // of the transport
	tokenDenied          = "PERMISSION_DENIED" // of the transport
	tokenNoWarehouse     = "NO_WAREHOUSE"      // ours: the directory is not there
	tokenUnreachable     = "UNREACHABLE"       // ours: no connection, or a broken one
	tokenInterrupted     = "INTERRUPTED"       // ours: Ctrl-C
	tokenAnswerLost      = "ANSWER_LOST"       // ours: all was sent, the connection broke
	tokenFindings        = "CHECK_FAILED"      // ours: check has found errors
)

// tokenExits are the statuses by token.
var tokenExits = map[string]int{
	string(tableerr.TokenInvalid):          exitInvalid,
	string(tableerr.TokenStreamIncomplete): exitInvalid,
	string(tableerr.TokenSchemaMismatch):   exitInvalid,
	string(tableerr.TokenNullKey):          exitInvalid,

	string(tableerr.TokenTableNotFound):   exitNotFound,
	string(tableerr.TokenVersionNotFound): exitNotFound,
	string(tableerr.TokenVersionExpired):  exitNotFound,
	tokenNoWarehouse:                      exitNotFound,

	string(tableerr.TokenTableExists):     exitExists,
	string(tableerr.TokenRequestIDReused): exitExists,

	string(tableerr.TokenVersionConflict): exitConflict,

	string(tableerr.TokenIntervalOverlap):    exitRefused,
	string(tableerr.TokenDuplicateInterval):  exitRefused,
	string(tableerr.TokenDuplicateSourceKey): exitRefused,
	string(tableerr.TokenUnmatchedSourceKey): exitRefused,
	string(tableerr.TokenAmbiguousTargetKey): exitRefused,
	string(tableerr.TokenFormatUnreadable):   exitRefused,
	string(tableerr.TokenFormatUnwritable):   exitRefused,
	string(tableerr.TokenUnsupported):        exitRefused,
	string(tableerr.TokenNoGranularity):      exitRefused,
	string(tableerr.TokenNotAppendOnly):      exitRefused,
	string(tableerr.TokenUniquenessViolated): exitRefused,
	string(tableerr.TokenClockBehind):        exitRefused,

	string(tableerr.TokenMessageTooLarge):  exitUnavailable,
	string(tableerr.TokenTooManyStreams):   exitUnavailable,
	string(tableerr.TokenQueueTimeout):     exitUnavailable,
	string(tableerr.TokenStorageFull):      exitUnavailable,
	string(tableerr.TokenStoreUnavailable): exitUnavailable,
	string(tableerr.TokenDraining):         exitUnavailable,
	string(tableerr.TokenTimedOut):         exitUnavailable,
	string(tableerr.TokenVacuumIncomplete): exitUnavailable,
	tokenUnreachable:                       exitUnavailable,

	string(tableerr.TokenCommitUnknown): exitUnknown,
	tokenAnswerLost:                     exitUnknown,

	string(tableerr.TokenCorrupt):     exitDamaged,
	string(tableerr.TokenFileMissing): exitDamaged,

	tokenUnauthenticated: exitDenied,
	tokenDenied:          exitDenied,

	tokenFindings: exitFindings,

	tokenInternal:    exitInternal,
	tokenInterrupted: exitInterrupted,
}

// exitOf is the status of a token. One that a newer service made up is an
// error inside.
func exitOf(token string) int {
	if code, ok := tokenExits[token]; ok {
		return code
	}
	return exitInternal
}
