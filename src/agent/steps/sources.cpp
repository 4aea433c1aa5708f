// Script mode: the user's sources, and what entry is told.
#include "agent/sources.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/steps.hpp"
#include "agent/tree.hpp"
#include "contract/entry.hpp"
#include "host/files.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kCode = "code";

Source source_of(const host::File& file) {
  return [&file](std::span<char> buffer) -> Result<size_t> {
    for (;;) {
      const ssize_t got = ::read(file.descriptor(), buffer.data(), buffer.size());
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return from_errno("reading the sources");
    }
  };
}

Result<void> fetch(Site& site, const std::string& archive) {
  TRY(host::remove_all(site.ml(kCode)));  // of an attempt that the store broke off
  const auto directory = TRY(site.ml_tree->make(kCode));
  if (!archive.starts_with("s3://")) {
    const auto file = TRY(site.ml_tree->open_file(archive));
    return unpack_sources(source_of(file), directory, site.interruption);
  }
  const auto location = TRY(objects::parse_s3_uri(archive));
  const auto reader = TRY(site.world.objects.get(location.bucket, location.key));
  return unpack_sources([&](std::span<char> buffer) { return reader->read(buffer); }, directory,
                        site.interruption);
}

// A folder of its own, that the container's first process may read and empty, whoever it runs as.
Result<void> write_told(Site& site) {
  const std::string folder = site.path("entry"), file = folder + "/host.json";
  TRY(host::make_directories(folder, 0700));
  contract::EntryTold told;
  told.gang_secret = gang_secret(site.order.attempt, site.order.token);
  told.cpus = site.order.share.cpus;
  TRY(host::write_file(file, contract::write_entry_told(told), 0600));
  for (const auto& path : {file, folder})
    if (::chown(path.c_str(), site.image.user_id, site.image.group_id) != 0)
      return from_errno("giving " + path + " to the job");
  return {};
}

}  // namespace

std::optional<Failure> fetch_sources(Site& site) {
  const auto& order = site.order;
  if (order.spec.plain()) return {};
  const bool of_image = !site.image.root.empty();
  const auto code = site.ml_tree->make(kCode);
  if (!code) return failure_of(code.error(), "making the directory of sources");
  if (of_image) {
    if (auto copied = copy_image_code(site.image.root, *code, site.interruption); !copied)
      return failure_of(copied.error(), "The image's /opt/ml/code cannot be used");
  }
  const auto path = site.image.environment.find("PATH");
  const bool has_train =
      of_image &&
      image_has_program(site.image.root, path == site.image.environment.end() ? "" : path->second, "train");
  site.runs_script = runs_script(order.spec, order.image, site.image, has_train);
  if (!site.runs_script) return {};
  if (site.world.entry_program.empty())
    return Failure{domain::Fault::internal, "this agent has no trainyard-entry beside it"};
  const auto archive = source_archive(order.spec);
  const auto listed = host::list_directory(site.ml(kCode));
  if (!archive.empty() && (!listed || listed->empty())) {
    auto done = with_store(site, "the sources", [&] { return fetch(site, archive); });
    if (!done) {
      const std::string doing = "The source directory " + archive + " cannot be used";
      // A broken archive is the user's, not the store's.
      if (done.error().kind == Kind::corrupt)
        return Failure{domain::Fault::client, doing + ": " + done.error().message};
      return failure_of(done.error(), doing);
    }
  }
  if (auto told = write_told(site); !told) return failure_of(told.error(), "preparing script mode");
  return {};
}

}  // namespace trainyard::agent
