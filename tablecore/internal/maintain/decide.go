package maintain

import (
	"context"
	"iter"
	"strings"
	"time"

	"contrail/tablecore/internal/attempt"
	"contrail/tablecore/internal/deltalog"
	"contrail/tablecore/objstore"
	"contrail/tablecore/tabledef"
)

// ownDir holds everything of Contrail's that is no data file.
const ownDir = "_contrail/"

// decide says what becomes of a file, as far as its name and time tell.
func (v *Vacuum) decide(info objstore.Info) Artifact {
	a := Artifact{Info: info, Disposition: Retained}
	if version, needed := v.refs.version(info.Key); needed {
		a.Reason, a.Version = ReferencedByCommit, &version
		return a
	}
	dropped, named := v.refs.dropped[info.Key]
	switch now := v.cfg.Clock(); {
	case !named && !tabledef.IsDataFile(info.Key) && !strings.HasPrefix(info.Key, ownDir):
		a.Reason = Unrecognized
	case !info.Modified.Before(v.cfg.OlderThan) || named && v.retains(dropped, now):
		a.Reason = WithinRetention
	case !named && v.inFlight(info, now):
		a.Reason = InFlight
	default:
		a.Disposition, a.Reason = Removable, Unreferenced
	}
	return a
}

// retains says whether a file that a commit has dropped must stay for readers of
// the versions before.
func (v *Vacuum) retains(dropped int64, now time.Time) bool {
	return now.Before(v.refs.heldUntil) || now.Sub(time.UnixMilli(dropped)) <= v.cfg.Retention
}

// inFlight says whether a file may be of somebody who is at work.
func (v *Vacuum) inFlight(info objstore.Info, now time.Time) bool {
	switch {
	case attempt.IsFile(info.Key):
		return !attempt.Dead(info, now)
	case strings.HasPrefix(info.Key, objstore.TempDir+"/") && now.Sub(info.Modified) < attempt.Life:
		return true // whoever writes it is seen by the file itself
	}
	return v.staged[info.Key] || v.flight.Covers(info.Modified)
}

// files yields the files of a table but for those of its log, in the order of
// their keys. Temporary files, which no listing of the whole shows, are among
// them.
func files(ctx context.Context, store objstore.Store) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		var temporary []objstore.Info
		for info, err := range store.List(ctx, objstore.TempDir+"/", "") {
			if err != nil {
				yield(info, err)
				return
			}
			temporary = append(temporary, info)
		}
		for info, err := range withoutLog(ctx, store) {
			for err == nil && len(temporary) > 0 && temporary[0].Key < info.Key {
				if !yield(temporary[0], nil) {
					return
				}
				temporary = temporary[1:]
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
		for _, info := range temporary {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// withoutLog lists what lies before the log and then what lies behind it, so
// that a long log is passed over.
func withoutLog(ctx context.Context, store objstore.Store) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		log, _, _ := strings.Cut(deltalog.CommitKey(0), "/")
		for info, err := range store.List(ctx, "", "") {
			if err == nil && info.Key > log {
				break
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
		for info, err := range store.List(ctx, "", log+"/\xff") {
			if err == nil && strings.HasPrefix(info.Key, log+"/") {
				continue
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}
