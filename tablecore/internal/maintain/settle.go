package maintain

import (
	"context"
	"errors"
	"strings"
	"sync"

	"contrail/tablecore/internal/datafile"
	"contrail/tablecore/objstore"
)

// deletions is how many files are deleted side by side.
const deletions = 8

// settle finishes the removable files of a batch: it looks whether they can be
// read and, where Apply is set, deletes them. With an error it returns the first
// path that failed; files behind it may be deleted or not, as they then say.
func (v *Vacuum) settle(ctx context.Context, batch []Artifact) (path string, err error) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	next, failed := 0, len(batch)
	take := func() (at int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		for next < failed {
			at = next
			next++
			if batch[at].Disposition == Removable {
				return at, true
			}
		}
		return 0, false
	}
	for range deletions {
		workers.Go(func() {
			for at, ok := take(); ok; at, ok = take() {
				stopped := v.settleOne(ctx, &batch[at])
				if stopped == nil {
					continue
				}
				mu.Lock()
				if at < failed {
					failed, err = at, stopped
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if err != nil {
		return batch[failed].Key, err
	}
	return "", nil
}

// settleOne finishes one removable file.
func (v *Vacuum) settleOne(ctx context.Context, a *Artifact) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.HasSuffix(a.Key, ".parquet") && !readable(ctx, v.cfg.Store, a.Key) {
		a.Reason = Unreadable
	}
	if !v.cfg.Apply {
		return nil
	}
	found, err := v.cfg.Store.Head(ctx, a.Key)
	switch {
	case errors.Is(err, objstore.ErrNotExist):
		a.Disposition, a.Reason = AlreadyAbsent, Unreferenced
		return nil
	case err != nil:
		return err
	case found.Size != a.Size || !found.Modified.Equal(a.Modified):
		a.Info = found
		a.Disposition, a.Reason = Retained, ChangedMeanwhile
		return nil
	}
	if err := v.cfg.Store.Delete(ctx, a.Key); err != nil {
		return err
	}
	a.Disposition = Deleted
	return nil
}

// readable says whether a file is one of Parquet, as far as its footer tells.
func readable(ctx context.Context, store objstore.Store, key string) bool {
	r, err := store.Open(ctx, key)
	if err != nil {
		return false
	}
	defer r.Close() // reading is over: nothing to learn from the error
	return datafile.CheckFooter(ctx, r, key) == nil
}
