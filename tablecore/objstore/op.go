package objstore

// Op names an operation of a Store, a Reader or a Writer, in errors, counts and traces.
type Op string

// The operations. OpReadAt belongs to a Reader; OpWrite, OpCommit and OpAbort belong to a Writer.
const (
	OpGet            Op = "get"
	OpOpen           Op = "open"
	OpReadAt         Op = "read"
	OpPut            Op = "put"
	OpPutIfAbsent    Op = "put if absent"
	OpPutAllIfAbsent Op = "put all if absent"
	OpCreate         Op = "create"
	OpWrite          Op = "write"
	OpCommit         Op = "commit"
	OpAbort          Op = "abort"
	OpHead           Op = "head"
	OpList           Op = "list"
	OpListDirs       Op = "list directories"
	OpDelete         Op = "delete"
	OpDeleteAll      Op = "delete all"
	OpSub            Op = "open directory"
	OpCurrent        Op = "check directory"
	OpTrash          Op = "move directory"
	OpDeleteTree     Op = "delete directory"
)
