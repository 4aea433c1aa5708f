// Syncs directories to the object store while the job runs: checkpoints, which are restored when
// the job is started again, files for TensorBoard, and intermediate output.
#include "agent/files/checkpoint_sync.hpp"

#include "agent/steps.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "contract/contract.hpp"
#include "os/files.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kIntermediate = "output/intermediate";

// The workspace's directory for synced directories outside of /opt/ml, which are mounted at the
// requested path.
constexpr const char* kCheckpoints = "checkpoints";
constexpr const char* kTensorboard = "tensorboard";

// Event files may change at any time; readers do not read them more often than this.
constexpr Duration kTensorboardInterval = 5s;

std::unique_ptr<CheckpointSync> make_sync(StepContext& context, SyncSettings settings, Tree base) {
  return std::make_unique<CheckpointSync>(std::move(settings), std::move(base),
                                          context.world.objects, context.keys, context.world.facts,
                                          context.world.clock);
}

// Adds the mount of a directory that is not below /opt/ml, `name` in the workspace.
Result<std::unique_ptr<CheckpointSync>> make_sync_of(StepContext& context,
                                                     const domain::SyncedDirectory& directory,
                                                     const char* name, SyncSettings settings) {
  const std::string& path_inside = directory.path;
  settings.place = path_inside;
  settings.to = TRY(objects::parse_s3_uri(directory.uri));
  if (!settings.to.key.empty() && !settings.to.key.ends_with('/')) settings.to.key += '/';
  const std::string base = std::string(contract::kBase) + "/";
  if (path_inside.starts_with(base)) {
    settings.directory = path_inside.substr(base.size());
    return make_sync(context, std::move(settings), TRY(context.ml_tree->below("")));
  }
  const std::string source = context.writable_path(name);
  TRY(os::make_directories(source));
  auto tree = TRY(Tree::open(source));
  containers::Mount mount;
  mount.source = source;
  mount.destination = path_inside;
  mount.read_only = false;
  context.mounts.push_back(std::move(mount));
  return make_sync(context, std::move(settings), std::move(tree));
}

// Aborts unfinished uploads of a killed agent: they never become objects, but use space in the
// store.
void remove_unfinished_uploads(StepContext& context, const objects::Location& below) {
  if (context.order.attempt.number <= 1) return;
  const auto uploads = context.world.objects.list_uploads(below.bucket, below.key);
  if (!uploads) return;
  for (const auto& upload : *uploads) {
    // Later uploads belong to other hosts of this attempt.
    if (upload.started >= context.order.created) continue;
    if (auto aborted =
            context.world.objects.abort_upload(below.bucket, upload.key, upload.upload_id);
        !aborted)
      log(Level::info, "agent", "cannot abort an unfinished upload",
          {{"error", aborted.error().message}});
  }
}

}  // namespace

std::optional<Failure> restore_checkpoints(StepContext& context) {
  const auto& checkpoint = context.order.spec.checkpoint;
  if (!checkpoint) return {};
  const std::string doing = "Checkpoint download failed: " + checkpoint->uri;
  auto made = make_sync_of(context, *checkpoint, kCheckpoints, {});
  if (!made) return failure_of(made.error(), doing);
  auto sync = *std::move(made);
  auto restored = with_store(context, "checkpoints",
                             [&]() -> Result<void> { return sync->restore(context.interruption); });
  if (!restored) return failure_of(restored.error(), doing);
  remove_unfinished_uploads(context, sync->settings().to);
  context.syncs.push_back(std::move(sync));
  return {};
}

// Makes the directory. The files of earlier attempts stay in the store and are not downloaded.
std::optional<Failure> make_tensorboard_directory(StepContext& context) {
  const auto& tensorboard = context.order.spec.tensorboard;
  if (!tensorboard) return {};
  const std::string doing = "TensorBoard output cannot be uploaded to " + tensorboard->uri;
  SyncSettings settings;
  settings.rules = {.deletions = false, .event_files = true};
  settings.marks = false;  // TensorBoard would read markers as event files
  settings.interval = kTensorboardInterval;
  auto made = make_sync_of(context, *tensorboard, kTensorboard, std::move(settings));
  if (!made) return failure_of(made.error(), doing);
  auto sync = *std::move(made);
  auto ready = with_store(context, "TensorBoard output", [&] { return sync->make_directory(); });
  if (!ready) return failure_of(ready.error(), doing);
  remove_unfinished_uploads(context, sync->settings().to);
  context.syncs.push_back(std::move(sync));
  return {};
}

std::optional<Failure> start_syncs(StepContext& context) {
  if (auto to = objects::parse_s3_uri(context.order.spec.output_uri)) {
    if (!to->key.empty() && !to->key.ends_with('/')) to->key += '/';
    SyncSettings settings;
    settings.directory = kIntermediate;
    settings.place = std::string(contract::kBase) + "/" + kIntermediate;
    settings.to = {to->bucket, to->key + context.order.job.name + "/output/intermediate/"};
    settings.rules.deletions = false;  // as SageMaker's own toolkit does
    settings.marks = false;
    auto base = context.ml_tree->below("");
    if (!base) return failure_of(base.error(), "opening the host's directories");
    context.syncs.push_back(make_sync(context, std::move(settings), *std::move(base)));
  }
  for (auto& sync : context.syncs) sync->start();
  return {};
}

// Makes the last sync before the host reports that it has drained, so that the next attempt finds
// all files. Files that cannot be copied fail the job, but only after its artifacts are uploaded.
std::optional<Failure> finish_syncs(StepContext& context) {
  for (auto& sync : context.syncs) {
    auto finished = with_store(context, sync->settings().place, [&]() -> Result<void> {
      return sync->finish(context.interruption);
    });
    if (!finished && !context.sync_failure)
      context.sync_failure = failure_of(
          finished.error(), sync->settings().place + " could not be copied to " + sync->uri());
  }
  return {};
}

std::optional<Failure> report_failed_syncs(StepContext& context) { return context.sync_failure; }

void end_syncs(StepContext& context) {
  context.syncs.clear();
  context.mounts.clear();
}

}  // namespace trainyard::agent
