// Directories that are kept in the object store while the job runs: checkpoints, which are there again when
// the job is started anew, and intermediate output.
#include "agent/mirror.hpp"

#include "agent/steps.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "contract/contract.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kIntermediate = "output/intermediate";

std::unique_ptr<Mirror> make_mirror(Site& site, MirrorSettings settings) {
  return std::make_unique<Mirror>(std::move(settings), site.world.objects, site.keys, site.world.facts,
                                  site.world.clock);
}

// Where the checkpoints lie on this machine: a path below /opt/ml is there already.
std::string checkpoint_directory(const Site& site, const std::string& path_inside) {
  const std::string base = std::string(contract::kBase) + "/";
  return path_inside.starts_with(base) ? site.ml(path_inside.substr(base.size())) : site.path("checkpoints");
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
  MirrorSettings settings;
  settings.directory = checkpoint_directory(site, checkpoint->path);
  settings.place = checkpoint->path;
  settings.to = *to;
  if (settings.directory == site.path("checkpoints")) {
    host::Mount mount;
    mount.source = settings.directory;
    mount.destination = checkpoint->path;
    mount.read_only = false;
    site.mounts.push_back(std::move(mount));
  }
  auto mirror = make_mirror(site, std::move(settings));
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
    settings.directory = site.ml(kIntermediate);
    settings.place = std::string(contract::kBase) + "/" + kIntermediate;
    settings.to = {to->bucket, to->key + site.order.job.name + "/output/intermediate/"};
    settings.deletions = false;  // as SageMaker's own toolkit does it
    settings.marks = false;
    site.mirrors.push_back(make_mirror(site, std::move(settings)));
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
