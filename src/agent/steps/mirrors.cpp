// Directories that are kept in the object store while the job runs: checkpoints, which are there again when
// the job is started anew, and intermediate output.
#include "agent/mirror.hpp"

#include "agent/steps.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "contract/contract.hpp"
#include "host/files.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kIntermediate = "output/intermediate";

constexpr const char* kBeside =
    "checkpoints";  // those that do not lie below /opt/ml: mounted where the job wants them

std::unique_ptr<Mirror> make_mirror(Site& site, MirrorSettings settings, Tree base) {
  return std::make_unique<Mirror>(std::move(settings), std::move(base), site.world.objects, site.keys,
                                  site.world.facts, site.world.clock);
}

// Makes the directory of checkpoints that lie at `path_inside` of the container, and its mount where that needs one.
Result<std::unique_ptr<Mirror>> make_checkpoint_mirror(Site& site, const std::string& path_inside,
                                                       const objects::Location& to) {
  MirrorSettings settings;
  settings.place = path_inside;
  settings.to = to;
  const std::string base = std::string(contract::kBase) + "/";
  if (path_inside.starts_with(base)) {
    settings.directory = path_inside.substr(base.size());
    return make_mirror(site, std::move(settings), TRY(site.ml_tree->below("")));
  }
  TRY(host::make_directories(site.path(kBeside)));
  auto tree = TRY(Tree::open(site.path(kBeside)));
  host::Mount mount;
  mount.source = site.path(kBeside);
  mount.destination = path_inside;
  mount.read_only = false;
  site.mounts.push_back(std::move(mount));
  return make_mirror(site, std::move(settings), std::move(tree));
}

// Parts of uploads that an agent left when it was killed: never an object, only room in the store.
void remove_unfinished_uploads(Site& site, const objects::Location& below) {
  if (site.order.attempt.number <= 1) return;
  const auto uploads = site.world.objects.list_uploads(below.bucket, below.key);
  if (!uploads) return;
  for (const auto& upload : *uploads) {
    // This attempt's other hosts may upload already.
    if (upload.started >= site.order.created) continue;
    if (auto aborted = site.world.objects.abort_upload(below.bucket, upload.key, upload.upload_id); !aborted)
      log(Level::info, "agent", "an unfinished upload stays", {{"error", aborted.error().message}});
  }
}

}  // namespace

std::optional<Failure> restore_checkpoints(Site& site) {
  const auto& checkpoint = site.order.spec.checkpoint;
  if (!checkpoint) return {};
  const std::string doing = "Checkpoint download failed: " + checkpoint->uri;
  auto to = objects::parse_s3_uri(checkpoint->uri);
  if (!to) return failure_of(to.error(), doing);
  if (!to->key.empty() && !to->key.ends_with('/')) to->key += '/';
  auto made = make_checkpoint_mirror(site, checkpoint->path, *to);
  if (!made) return failure_of(made.error(), doing);
  auto mirror = *std::move(made);
  auto restored =
      with_store(site, "checkpoints", [&]() -> Result<void> { return mirror->restore(site.interruption); });
  if (!restored) return failure_of(restored.error(), doing);
  remove_unfinished_uploads(site, *to);
  site.mirrors.push_back(std::move(mirror));
  return {};
}

std::optional<Failure> start_mirrors(Site& site) {
  if (auto to = objects::parse_s3_uri(site.order.spec.output_uri)) {
    if (!to->key.empty() && !to->key.ends_with('/')) to->key += '/';
    MirrorSettings settings;
    settings.directory = kIntermediate;
    settings.place = std::string(contract::kBase) + "/" + kIntermediate;
    settings.to = {to->bucket, to->key + site.order.job.name + "/output/intermediate/"};
    settings.deletions = false;  // as SageMaker's own toolkit does it
    settings.marks = false;
    auto base = site.ml_tree->below("");
    if (!base) return failure_of(base.error(), "opening the host's directories");
    site.mirrors.push_back(make_mirror(site, std::move(settings), *std::move(base)));
  }
  for (auto& mirror : site.mirrors) mirror->start();
  return {};
}

// The last time, before the host says that it has drained: an attempt that follows finds everything. What
// cannot be brought over fails the job, but not before its artifacts are up.
std::optional<Failure> finish_mirrors(Site& site) {
  for (auto& mirror : site.mirrors) {
    auto finished = with_store(site, mirror->settings().place,
                               [&]() -> Result<void> { return mirror->finish(site.interruption); });
    if (!finished && !site.mirror_failure)
      site.mirror_failure = failure_of(
          finished.error(), mirror->settings().place + " could not be brought to " + mirror->uri());
  }
  return {};
}

std::optional<Failure> judge_mirrors(Site& site) { return site.mirror_failure; }

void end_mirrors(Site& site) {
  site.mirrors.clear();
  site.mounts.clear();
}

}  // namespace trainyard::agent
