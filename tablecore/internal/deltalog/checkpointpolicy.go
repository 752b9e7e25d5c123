package deltalog

// When a checkpoint pays. Reading one commit costs about as much as a hundred
// entries of a checkpoint, so a checkpoint is written when the tail behind the
// last one has grown to a share of it, in bytes and in commits a file, which
// keeps the cost of checkpoints proportional to the commits; and after many
// commits in any case, so that a cold reader never opens more files than that.
//
// The bytes alone were not enough: a checkpoint packs its entries well, and with
// that share alone it took a third of the work of small appends to 10,000 files.
const (
	checkpointAfterCommits = 100
	checkpointAlwaysAfter  = 1000
	checkpointTailDivisor  = 4 // the tail has a quarter of the checkpoint's bytes
	checkpointPerCommit    = 5 // actions of the state that one commit of the tail pays for
)

// Checkpoint returns the newest checkpoint that s knows of. It is the one that
// s was loaded from, or the one given to WithCheckpoint.
func (s *State) Checkpoint() CheckpointRef { return s.checkpoint }

// WithCheckpoint returns s knowing of a checkpoint that was written meanwhile.
// A ref above s's version or below what s knows changes nothing.
func (s *State) WithCheckpoint(ref CheckpointRef) *State {
	if ref.Version > s.version || ref.Version <= s.checkpoint.Version {
		return s
	}
	next := *s
	next.checkpoint = ref
	return &next
}

// WantsCheckpoint tells whether it is time to write a checkpoint of s.
func (s *State) WantsCheckpoint() bool {
	commits := s.version - s.checkpoint.Version
	tail := s.logBytes - s.checkpoint.logBytes
	return commits >= checkpointAlwaysAfter ||
		commits >= max(checkpointAfterCommits, int64(s.numActions()/checkpointPerCommit)) && tail >= s.checkpoint.Bytes/checkpointTailDivisor
}
