// Prepares script mode: fetches the user's sources and writes the config that entry reads.
#include "agent/sources.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/files/tree.hpp"
#include "agent/steps.hpp"
#include "contract/entry.hpp"
#include "objects/verifier.hpp"
#include "os/files.hpp"

namespace trainyard::agent {
namespace {

constexpr const char* kCode = "code";
constexpr size_t kRestBufferBytes = 64 << 10;

Source source_of(const os::File& file) {
  return [&file](std::span<char> buffer) -> Result<size_t> {
    for (;;) {
      const ssize_t got = ::read(file.descriptor(), buffer.data(), buffer.size());
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) return from_errno("reading the sources");
    }
  };
}

Result<void> read_rest(objects::Reader& reader, const Interruption& interruption) {
  std::vector<char> buffer(kRestBufferBytes);
  do {
    TRY(interruption.check());
  } while (TRY(reader.read(buffer)) > 0);
  return {};
}

Result<void> fetch(StepContext& context, const std::string& archive) {
  TRY(os::remove_all(context.ml(kCode)));  // from a try that an outage of the store ended
  const auto directory = TRY(context.ml_tree->make(kCode));
  if (!archive.starts_with("s3://")) {
    const auto file = TRY(context.ml_tree->open_file(archive));
    return unpack_sources(source_of(file), directory, context.interruption);
  }
  const auto location = TRY(objects::parse_s3_uri(archive));
  const auto reader = TRY(context.world.objects.get(location.bucket, location.key));
  auto unpacked = unpack_sources([&](std::span<char> buffer) { return reader->read(buffer); },
                                 directory, context.interruption);
  // The end of the object may not be needed for that, but it is compared with its checksum, which
  // also tells a damaged transfer from a broken archive.
  if (unpacked || unpacked.error().kind == Kind::corrupt)
    TRY(read_rest(*reader, context.interruption));
  return unpacked;
}

// Makes a separate directory, which the container's first process can read and empty as any user.
Result<void> write_entry_file(StepContext& context) {
  const std::string folder = context.writable_path("entry"), file = folder + "/host.json";
  TRY(os::make_directories(folder, 0700));
  contract::EntryConfig entry_config;
  entry_config.gang_secret = gang_secret(context.order.attempt, context.order.token);
  entry_config.cpus = context.order.share.cpus;
  TRY(os::write_file(file, contract::write_entry_config(entry_config), 0600));
  for (const auto& path : {file, folder})
    if (::chown(path.c_str(), context.image.user_id, context.image.group_id) != 0)
      return from_errno("changing the owner of " + path);
  return {};
}

}  // namespace

std::optional<Failure> fetch_sources(StepContext& context) {
  const auto& order = context.order;
  if (order.spec.contract == domain::Contract::plain) return {};
  const bool of_image = !context.image.root.empty();
  const auto code = context.ml_tree->make(kCode);
  if (!code) return failure_of(code.error(), "making the directory of sources");
  if (of_image) {
    if (auto copied = copy_image_code(context.image.root, *code, context.interruption); !copied)
      return failure_of(copied.error(), "The image's /opt/ml/code cannot be used");
  }
  const auto path = context.image.environment.find("PATH");
  const bool has_train =
      of_image &&
      image_has_program(context.image.root,
                        path == context.image.environment.end() ? "" : path->second, "train");
  context.runs_script = runs_script(order.spec, order.image, context.image, has_train);
  if (!context.runs_script) return {};
  if (context.world.entry_program.empty())
    return Failure{domain::Fault::internal,
                   "starting script mode: trainyard-entry not found next to the agent"};
  const auto archive = source_archive(order.spec);
  const auto listed = os::list_directory(context.ml(kCode));
  if (!archive.empty() && (!listed || listed->empty())) {
    auto done = with_store(context, "the sources", [&] {
      return objects::repeat_if_damaged([&] { return fetch(context, archive); });
    });
    if (!done) {
      const std::string doing = "The source directory " + archive + " cannot be used";
      // A broken archive is the user's fault, not the store's.
      if (done.error().kind == Kind::corrupt && !done.error().is(objects::Fault::bytes_damaged))
        return Failure{domain::Fault::client, doing + ": " + done.error().message};
      return failure_of(done.error(), doing);
    }
  }
  if (auto entry_config = write_entry_file(context); !entry_config)
    return failure_of(entry_config.error(), "preparing script mode");
  return {};
}

}  // namespace trainyard::agent
