package flightsrv

import (
	"context"

	"contrail/descriptors"
	"contrail/tablecore"
	"contrail/tablecore/tableerr"
)

// tableCall is an action on a table.
type tableCall struct {
	server *Server
	table  *tablecore.Table
	out    messages
}

func (c tableCall) describe(ctx context.Context, r *descriptors.DescribeTable) (any, error) {
	return c.table.Describe(ctx, tablecore.At{Version: r.Version, AsOf: r.AsOf, TableID: r.TableID})
}

func (c tableCall) addColumns(ctx context.Context, r *descriptors.AddColumns) (any, error) {
	schema, err := requestedSchema(r.SchemaIPC, r.Columns)
	if err != nil {
		return nil, tableerr.WithTable(err, c.table.Name().String())
	}
	return c.table.AddColumns(ctx, tablecore.AddColumnsOptions{Schema: schema, ExpectedVersion: r.ExpectedVersion, TableID: r.TableID})
}

func (c tableCall) setProperties(ctx context.Context, r *descriptors.SetProperties) (any, error) {
	return c.table.SetProperties(ctx, tablecore.SetPropertiesOptions{Properties: r.Properties, LeastSnapshotRetention: c.server.opts.TicketLifetime,
		ExpectedVersion: r.ExpectedVersion, TableID: r.TableID})
}

func (c tableCall) checkpoint(ctx context.Context, r *descriptors.Checkpoint) (any, error) {
	return c.table.Checkpoint(ctx, tablecore.CheckpointOptions{ExpectedVersion: r.ExpectedVersion, TableID: r.TableID})
}

func (c tableCall) rollback(ctx context.Context, r *descriptors.Rollback) (any, error) {
	return c.table.Rollback(ctx, tablecore.RollbackOptions{
		Version: r.Version, ExpectedVersion: r.ExpectedVersion, Release: r.Release, DryRun: r.DryRun, TableID: r.TableID,
	})
}

func (c tableCall) commitStaged(ctx context.Context, r *descriptors.CommitStaged) (any, error) {
	return c.table.CommitStaged(ctx, tablecore.CommitStagedOptions{RequestID: r.RequestID, Staged: r.Staged, ExpectedVersion: r.ExpectedVersion, TableID: r.TableID})
}

func (c tableCall) abortStaged(ctx context.Context, r *descriptors.AbortStaged) (any, error) {
	return c.table.AbortStaged(ctx, tablecore.AbortStagedOptions{Staged: r.Staged, TableID: r.TableID})
}

// optimize ends with its client until it commits: what was written is removed
// then.
func (c tableCall) optimize(ctx context.Context, r *descriptors.Optimize) (any, error) {
	return c.table.Optimize(ctx, tablecore.OptimizeOptions{Layout: r.Layout, TargetFileBytes: r.TargetFileBytes, MaxFiles: r.MaxFiles,
		DryRun: r.DryRun, ExpectedVersion: r.ExpectedVersion, TableID: r.TableID, Progress: c.out.progress})
}

// upgrade ends with its client behind a step: the next upgrade goes on from
// there.
func (c tableCall) upgrade(ctx context.Context, r *descriptors.Upgrade) (any, error) {
	return c.table.Upgrade(ctx, tablecore.UpgradeOptions{
		IndexColumn: r.IndexColumn, IndexGranularity: r.IndexGranularity, EntityColumns: r.EntityColumns, Timezone: r.Timezone, Uniqueness: r.Uniqueness,
		KeepSnapshots: r.KeepSnapshots, KeepSnapshotsUntil: r.KeepSnapshotsUntil, NoCompact: r.NoCompact, DryRun: r.DryRun,
		ExpectedVersion: r.ExpectedVersion, TableID: r.TableID, Progress: c.out.progress,
	})
}

// vacuum sends what becomes of each file before its sums. It ends when its
// client goes away: what was removed by then was not needed.
func (c tableCall) vacuum(ctx context.Context, r *descriptors.Vacuum) (any, error) {
	return c.table.Vacuum(ctx, tablecore.VacuumOptions{OlderThan: r.OlderThan, Apply: r.Apply, Expire: r.Expire, Force: r.Force,
		LeastSnapshotRetention: c.server.opts.TicketLifetime, ExpectedVersion: r.ExpectedVersion, TableID: r.TableID, Progress: c.out.progress,
		Artifacts: func(list []tablecore.VacuumArtifact) error {
			return c.out.send(map[string][]tablecore.VacuumArtifact{"artifacts": list})
		}})
}
