// Directories that are kept in the object store while the job runs: checkpoints, which are there again when
// the job is started anew, and intermediate output.
#include "agent/mirror.hpp"

#include "agent/steps.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "contract/contract.hpp"
#include "os/files.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kIntermediate = "output/intermediate";

constexpr const char* kBeside =
    "checkpoints";  // those that do not lie below /opt/ml: mounted where the job wants them

std::unique_ptr<Mirror> make_mirror(StepContext& context, MirrorSettings settings, Tree base) {
  return std::make_unique<Mirror>(std::move(settings), std::move(base), context.world.objects, context.keys,
                                  context.world.facts, context.world.clock);
}

// Makes the directory of checkpoints that lie at `path_inside` of the container, and its mount where that needs one.
Result<std::unique_ptr<Mirror>> make_checkpoint_mirror(StepContext& context, const std::string& path_inside,
                                                       const objects::Location& to) {
  MirrorSettings settings;
  settings.place = path_inside;
  settings.to = to;
  const std::string base = std::string(contract::kBase) + "/";
  if (path_inside.starts_with(base)) {
    settings.directory = path_inside.substr(base.size());
    return make_mirror(context, std::move(settings), TRY(context.ml_tree->below("")));
  }
  TRY(os::make_directories(context.path(kBeside)));
  auto tree = TRY(Tree::open(context.path(kBeside)));
  containers::Mount mount;
  mount.source = context.path(kBeside);
  mount.destination = path_inside;
  mount.read_only = false;
  context.mounts.push_back(std::move(mount));
  return make_mirror(context, std::move(settings), std::move(tree));
}

// Parts of uploads that an agent left when it was killed: never an object, only room in the store.
void remove_unfinished_uploads(StepContext& context, const objects::Location& below) {
  if (context.order.attempt.number <= 1) return;
  const auto uploads = context.world.objects.list_uploads(below.bucket, below.key);
  if (!uploads) return;
  for (const auto& upload : *uploads) {
    // This attempt's other hosts may upload already.
    if (upload.started >= context.order.created) continue;
    if (auto aborted = context.world.objects.abort_upload(below.bucket, upload.key, upload.upload_id);
        !aborted)
      log(Level::info, "agent", "an unfinished upload stays", {{"error", aborted.error().message}});
  }
}

}  // namespace

std::optional<Failure> restore_checkpoints(StepContext& context) {
  const auto& checkpoint = context.order.spec.checkpoint;
  if (!checkpoint) return {};
  const std::string doing = "Checkpoint download failed: " + checkpoint->uri;
  auto to = objects::parse_s3_uri(checkpoint->uri);
  if (!to) return failure_of(to.error(), doing);
  if (!to->key.empty() && !to->key.ends_with('/')) to->key += '/';
  auto made = make_checkpoint_mirror(context, checkpoint->path, *to);
  if (!made) return failure_of(made.error(), doing);
  auto mirror = *std::move(made);
  auto restored = with_store(context, "checkpoints",
                             [&]() -> Result<void> { return mirror->restore(context.interruption); });
  if (!restored) return failure_of(restored.error(), doing);
  remove_unfinished_uploads(context, *to);
  context.mirrors.push_back(std::move(mirror));
  return {};
}

std::optional<Failure> start_mirrors(StepContext& context) {
  if (auto to = objects::parse_s3_uri(context.order.spec.output_uri)) {
    if (!to->key.empty() && !to->key.ends_with('/')) to->key += '/';
    MirrorSettings settings;
    settings.directory = kIntermediate;
    settings.place = std::string(contract::kBase) + "/" + kIntermediate;
    settings.to = {to->bucket, to->key + context.order.job.name + "/output/intermediate/"};
    settings.deletions = false;  // as SageMaker's own toolkit does it
    settings.marks = false;
    auto base = context.ml_tree->below("");
    if (!base) return failure_of(base.error(), "opening the host's directories");
    context.mirrors.push_back(make_mirror(context, std::move(settings), *std::move(base)));
  }
  for (auto& mirror : context.mirrors) mirror->start();
  return {};
}

// The last time, before the host says that it has drained: an attempt that follows finds everything. What
// cannot be brought over fails the job, but not before its artifacts are up.
std::optional<Failure> finish_mirrors(StepContext& context) {
  for (auto& mirror : context.mirrors) {
    auto finished = with_store(context, mirror->settings().place,
                               [&]() -> Result<void> { return mirror->finish(context.interruption); });
    if (!finished && !context.mirror_failure)
      context.mirror_failure = failure_of(
          finished.error(), mirror->settings().place + " could not be brought to " + mirror->uri());
  }
  return {};
}

std::optional<Failure> judge_mirrors(StepContext& context) { return context.mirror_failure; }

void end_mirrors(StepContext& context) {
  context.mirrors.clear();
  context.mounts.clear();
}

}  // namespace trainyard::agent
