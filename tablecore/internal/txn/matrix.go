package txn

import "contrail/tablecore/internal/snapshot"

// Row is a line of the conflict matrix (table-semantics.md): what a committer
// is, when it meets commits that it has not seen.
type Row int

// The rows of the verbs there are.
const (
	// RowAppend is an append without expected_version.
	RowAppend Row = iota
	// RowPinned is update_rows, rollback, an expire, and anything with an
	// expected_version.
	RowPinned
	// RowAlter is add_columns or set_properties.
	RowAlter
	// RowOverwrite is an append without expected_version to a table that
	// overwrites.
	RowOverwrite
	// RowRewrite is what keeps every row and replaces files all the same, or
	// drops whole files: optimize, retention, the rewriting of an upgrade. What
	// others have replaced meanwhile it leaves out.
	RowRewrite

	numRows = iota
)

// Verdict says what a committer does about commits it has not seen. Of several
// the largest counts.
type Verdict int

// The verdicts, ascending.
const (
	// Revalidate repeats every check on the new snapshot; what was written is
	// used again.
	Revalidate Verdict = iota
	// Rebase repeats the verb's checks on the new snapshot and makes its commit
	// anew for it. To the queue that is the same as Revalidate: what an edit
	// keeps from one snapshot to the next is its own affair.
	Rebase
	// Replan is Revalidate, and where the edit then finds that its plan does not
	// hold any more (ErrReplan), the part of it that rests on others' files is
	// made anew.
	Replan
	// Refuse is VERSION_CONFLICT.
	Refuse
)

// columns are the effects that the matrix tells apart, in its order.
var columns = [...]snapshot.Effects{snapshot.Added, snapshot.Rewrote, snapshot.Redefined, snapshot.Reset}

// matrix is the conflict matrix.
var matrix = [numRows][len(columns)]Verdict{
	//         append, expire | update, overwrite,    | add_columns,   | rollback, upgrade,
	//                        | optimize, retention   | set_properties | protocol
	RowAppend:    {Revalidate, Revalidate, Revalidate, Revalidate},
	RowPinned:    {Refuse, Refuse, Refuse, Refuse},
	RowAlter:     {Rebase, Rebase, Refuse, Refuse},
	RowOverwrite: {Replan, Replan, Revalidate, Refuse},
	RowRewrite:   {Rebase, Rebase, Rebase, Refuse},
}

// Meets returns what a committer does about the effects of commits it has not
// seen.
func (r Row) Meets(theirs snapshot.Effects) Verdict {
	verdict := Revalidate
	for i, effect := range columns {
		if theirs&effect != 0 {
			verdict = max(verdict, matrix[r][i])
		}
	}
	return verdict
}
