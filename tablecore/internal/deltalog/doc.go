// Package deltalog reads and writes the transaction log of a Delta table, as
// the Delta protocol (delta-io/delta, PROTOCOL.md) describes it.
//
// # Model
//
// A [Commit] is one numbered file of the log, a [State] what all commits up to
// one version amount to. States are immutable and share what they have in
// common: [State.Apply] costs what the commit changes, whatever number of
// files is live. A [Log] finds, reads and extends the log in an
// objstore.Store that holds one table.
//
// # What is trusted
//
// Nothing. Commits, checkpoints and the `_last_checkpoint` hint may come from
// other software or from an attacker: sizes and depths are limited, integers
// are never passed through a float, paths are confined to the table, and
// damage ends in *tableerr.Corrupt. Unknown fields and unknown actions are
// ignored, as the protocol demands; unknown reader features are refused with
// *tableerr.Unsupported. The hint can only cost time.
//
// # What is written
//
// Commits by put-if-absent, and classic single-file checkpoints. Both are
// deterministic: equal content gives equal bytes. So is [EncodeState], which
// makes a state bytes that are quick to read; where they are kept is for others
// to say. [Log.Resume] goes on from such a state if the log still holds the
// commit it was made with, and from nothing else.
//
// Errors of the store itself are passed on wrapped, for the caller to tell
// apart with errors.Is and errors.As.
package deltalog
