#include "trainyard/operate/downgrade.hpp"

#include <fcntl.h>

#include <vector>

#include "ledger/downgrade.hpp"
#include "objects/directory.hpp"
#include "objects/directory/key_path.hpp"
#include "objects/directory/record.hpp"
#include "observe/metrics.hpp"
#include "os/files.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {
namespace {

constexpr const char* kFormatOfFirstRelease = "trainyard objects 1\n";
constexpr size_t kCopyBytes = 1 << 20;
constexpr size_t kPageObjects = 1000;

// Rewrites an object as one file.
Result<void> join(objects::Objects& objects, const std::string& bucket, const std::string& key) {
  const auto reader = TRY(objects.get(bucket, key));
  const objects::ObjectInfo& info = reader->info();
  objects::PutOptions options;
  options.content_type = info.content_type;
  options.headers = info.headers;
  options.metadata = info.metadata;
  options.bytes = info.bytes;
  // A checksum of the parts' checksums ends in "-COUNT".
  for (const auto& [algorithm, value] : info.checksums)
    if (value.find('-') == std::string::npos) options.checksums[algorithm] = value;
  const auto writer = TRY(objects.put(bucket, key, options));
  std::vector<char> buffer(kCopyBytes);
  for (;;) {
    const size_t bytes = TRY(reader->read(buffer));
    if (bytes == 0) break;
    TRY(writer->write(std::span<const char>(buffer.data(), bytes)));
  }
  TRY(writer->commit());
  return ok();
}

Result<bool> is_list(const std::string& path) {
  const os::File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return from_errno("opening " + path);
  return TRY(objects::read_record(file.descriptor(), path)).parts > 0;
}

Result<uint64_t> join_lists(objects::Objects& objects, const std::string& directory) {
  uint64_t joined = 0;
  for (const auto& bucket : TRY(objects.list_buckets())) {
    objects::ListQuery query;
    query.keys_max = kPageObjects;
    do {
      const auto page = TRY(objects.list(bucket.name, query));
      for (const auto& object : page.objects) {
        const std::string path =
            directory + "/buckets/" + bucket.name + "/keys/" + objects::path_of(object.key);
        if (!TRY(is_list(path))) continue;
        TRY(join(objects, bucket.name, object.key)
                .in("joining s3://" + bucket.name + "/" + object.key));
        ++joined;
      }
      query.start_after = page.next;
    } while (!query.start_after.empty());
  }
  return joined;
}

}  // namespace

Result<Downgraded> downgrade(const std::string& data_directory, Clock& clock, Random& random) {
  if (!os::exists(data_directory + "/ledger.db"))
    return not_found(data_directory + " holds no ledger of Trainyard");
  const auto data = TRY(DataDirectory::open(data_directory).in("downgrading " + data_directory));
  const std::string place = data.file("objects");
  Downgraded done;
  if (os::exists(place)) {
    {
      const auto objects = TRY(objects::open_directory(place, clock, random));
      done.joined = TRY(join_lists(*objects, place));
    }
    TRY(os::write_file_durably(place + "/format", kFormatOfFirstRelease));
  }
  done.points = TRY(observe::downgrade_metrics(data.file("metrics")));
  const auto restored =
      TRY(ledger::restore_copy(data.file("ledger.db")).in("downgrading " + data_directory));
  done.ledger_version = restored.version;
  done.kept_ledger = restored.kept_copy;
  return done;
}

}  // namespace trainyard::apps
