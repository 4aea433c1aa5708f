#include "file_systems/exchange.hpp"

#include <algorithm>
#include <charconv>

#include "base/arithmetic.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "objects/verifier.hpp"
#include "os/parallel.hpp"

namespace trainyard::file_systems {
namespace {

constexpr size_t kThreads = 8;  // of one exchange: they hide the latency of small objects
constexpr int kTriesMax = 4;    // of one object, after temporary faults
constexpr size_t kListedMax = 10'000'000;  // objects of one link: some gigabytes of memory

using Listing = std::map<std::string, objects::ObjectInfo>;

// Returns true if the fault concerns more than one file.
bool ends_exchange(const Error& error) {
  return error.kind == Kind::exhausted || error.kind == Kind::cancelled ||
         error.is(objects::Fault::bucket_missing);
}

std::string code_of(const Error& error) {
  switch (error.kind) {
    case Kind::denied:
      return "S3AccessDenied";
    case Kind::not_found:
      return "S3ObjectNotFound";
    case Kind::conflict:
      return "ResourceBusy";
    case Kind::invalid:
      return "S3ObjectPathNotPosixCompliant";
    case Kind::unavailable:
    case Kind::corrupt:
      return "S3Error";
    default:
      return "InternalError";
  }
}

Result<std::vector<objects::ObjectInfo>> list_all(const Exchange& exchange,
                                                  const objects::Location& at) {
  std::vector<objects::ObjectInfo> all;
  objects::ListQuery query;
  query.prefix = at.key;
  do {
    if (exchange.cancelled()) return cancelled("listing s3://" + at.bucket + " was cancelled");
    auto page =
        TRY(exchange.objects.list(at.bucket, query).in("listing s3://" + at.bucket + "/" + at.key));
    std::ranges::move(page.objects, std::back_inserter(all));
    if (all.size() > kListedMax)
      return exhausted("s3://" + at.bucket + "/" + at.key + " has more than " +
                       std::to_string(kListedMax) + " objects");
    query.start_after = page.next;
  } while (!query.start_after.empty());
  return all;
}

// Collects the results of files. Threads: callable from anywhere.
class Tally {
 public:
  explicit Tally(Progress& progress) : progress_(progress) {}
  void fail(FileFailure failure) {
    ++progress_.files_failed;
    const MutexLock lock(mutex_);
    ++result_.failed;
    if (result_.failures.size() < kFailuresMax) result_.failures.push_back(std::move(failure));
  }
  void succeed() {
    ++progress_.files_done;
    const MutexLock lock(mutex_);
    ++result_.succeeded;
  }
  ExchangeResult take() {
    const MutexLock lock(mutex_);
    result_.total = result_.succeeded + result_.failed;
    return std::move(result_);
  }

 private:
  Progress& progress_;
  Mutex mutex_;
  ExchangeResult result_ GUARDED_BY(mutex_);
};

// Calls `work` for each number. Faults of one file are counted, other faults end the exchange.
Result<void> for_each_file(const Exchange& exchange, Tally& tally, size_t count,
                           const std::function<std::string(size_t)>& path_of,
                           const std::function<Result<void>(size_t)>& work) {
  return os::for_each_in_parallel(count, kThreads, [&](size_t i) -> Result<void> {
    for (int tried = 1;; ++tried) {
      if (exchange.cancelled()) return cancelled("the exchange was cancelled");
      auto done = work(i);
      if (done) {
        tally.succeed();
        return {};
      }
      if (ends_exchange(done.error())) return done;
      if (done.error().kind == Kind::unavailable && tried < kTriesMax) continue;
      if (tried == 1 && objects::is_damaged(done.error())) continue;
      if (done.error().kind == Kind::unavailable && exchange.waits_for_store) return done;
      tally.fail({path_of(i), code_of(done.error()), done.error().message});
      return {};
    }
  });
}

Result<void> fetch(const Exchange& exchange, const Link& link, const Fetch& wanted, size_t number) {
  if (wanted.directory) return exchange.content.make_directory(wanted.path);
  TRY(exchange.check_disk_space());
  const std::string uri = "s3://" + link.repository.bucket + "/" + wanted.key;
  auto reader = TRY(exchange.objects.get(link.repository.bucket, wanted.key).in("fetching " + uri));
  const uint64_t bytes = reader->info().bytes;
  // The object was replaced since it was listed, so the sum of sizes is wrong.
  if (bytes != wanted.bytes) return unavailable(uri + " changed while it was imported");
  uint64_t got = 0;
  TRY(exchange.content
          .write(wanted.path, wanted.modified, number,
                 [&](std::span<char> piece) -> Result<size_t> {
                   if (exchange.cancelled()) return cancelled("the import was cancelled");
                   const size_t read = TRY(reader->read(piece));
                   got += read;
                   if (got > bytes || (read == 0 && got < bytes))
                     return unavailable(uri + ": the body does not have the object's length");
                   exchange.progress.bytes_done += read;
                   return read;
                 })
          .in(wanted.path));
  return {};
}

// -- export

constexpr const char* kModifiedMetadata = "file-mtime";
constexpr uint64_t kPartBytes = uint64_t{64} << 20;  // larger files are put in parts
constexpr size_t kReadBytes = 1 << 20;

objects::PutOptions options_of(const OpenFile& file) {
  objects::PutOptions options;
  char mode[16];
  const auto end = std::to_chars(mode, mode + sizeof mode, file.mode, 8).ptr;
  // As FSx stores the POSIX properties of a file.
  options.metadata = {{"file-permissions", "0" + std::string(mode, end)},
                      {"file-owner", std::to_string(file.user)},
                      {"file-group", std::to_string(file.group)},
                      {kModifiedMetadata, std::to_string(file.modified_ns) + "ns"},
                      {"file-atime", std::to_string(file.modified_ns) + "ns"},
                      {"user-agent", "aws-fsx-lustre"}};
  return options;
}

Result<void> copy_bytes(const Exchange& exchange, const OpenFile& file, uint64_t count,
                        objects::Writer& writer) {
  std::vector<char> piece(kReadBytes);
  while (count > 0) {
    if (exchange.cancelled()) return cancelled("the export was cancelled");
    const size_t wanted = size_t(std::min<uint64_t>(piece.size(), count));
    const size_t got = TRY(read_piece(file, std::span(piece).first(wanted)));
    if (got == 0) return conflict("the file became shorter while it was exported");
    TRY(writer.write(std::span<const char>(piece.data(), got)));
    exchange.progress.bytes_done += got;
    count -= got;
  }
  return {};
}

Result<void> put_in_parts(const Exchange& exchange, const OpenFile& file, const std::string& bucket,
                          const std::string& key) {
  auto& objects = exchange.objects;
  const std::string upload = TRY(objects.start_upload(bucket, key, options_of(file)));
  const auto put = [&]() -> Result<void> {
    const uint64_t part_bytes =
        std::max(kPartBytes, file.facts.bytes / (objects::kPartsMax - 1) + 1);
    std::vector<objects::PartInfo> parts;
    for (uint64_t left = file.facts.bytes; left > 0;) {
      const uint64_t count = std::min(left, part_bytes);
      objects::PutOptions options;
      options.bytes = count;
      objects::PartInfo part;
      part.number = uint32_t(parts.size() + 1);
      auto writer = TRY(objects.put_part(bucket, key, upload, part.number, options));
      TRY(copy_bytes(exchange, file, count, *writer));
      part.etag = TRY(writer->commit()).etag;
      part.bytes = count;
      parts.push_back(std::move(part));
      left -= count;
    }
    TRY(objects.complete_upload(bucket, key, upload, parts));
    return {};
  }();
  if (!put) static_cast<void>(objects.abort_upload(bucket, key, upload));
  return put;
}

Result<void> put_file(const Exchange& exchange, const std::string& path, const std::string& bucket,
                      const std::string& key) {
  if (key.size() > objects::kKeyBytesMax)
    return invalid("'" + shorten(to_utf8(path), 120) + "' is too long for a key of S3");
  const OpenFile file = TRY(exchange.content.read(path).in(path));
  if (file.facts.bytes > kPartBytes) {
    TRY(put_in_parts(exchange, file, bucket, key).in("exporting to s3://" + bucket + "/" + key));
  } else {
    auto options = options_of(file);
    options.bytes = file.facts.bytes;
    auto writer = TRY(
        exchange.objects.put(bucket, key, options).in("exporting to s3://" + bucket + "/" + key));
    TRY(copy_bytes(exchange, file, file.facts.bytes, *writer));
    TRY(writer->commit().in("exporting to s3://" + bucket + "/" + key));
  }
  const OpenFile after = TRY(exchange.content.read(path).in(path));
  if (after.modified_ns == file.modified_ns && after.facts.bytes == file.facts.bytes) {
    exchange.content.mark_exported(path, file);
    return {};
  }
  return conflict("'" + shorten(to_utf8(path), 120) + "' changed while it was exported");
}

// Returns whether the object has the content of the file.
Result<bool> is_same(const Exchange& exchange, const std::string& bucket,
                     const objects::ObjectInfo& object, const OpenFile& file) {
  if (object.bytes != file.facts.bytes) return false;
  if (object.modified == file.facts.modified) return true;  // as it was imported
  const auto head = exchange.objects.head(bucket, object.key);
  if (!head) return false;
  const auto time = head->metadata.find(kModifiedMetadata);
  return time != head->metadata.end() && time->second == std::to_string(file.modified_ns) + "ns";
}

struct Target {
  const Link* link = nullptr;
  Listing listing;
};

Result<std::vector<Target>> list_targets(const Exchange& exchange, const std::vector<Link>& links,
                                         const std::vector<std::string>& paths) {
  std::vector<Target> targets;
  for (const Link& link : links) {
    Target target{&link, {}};
    const bool needed = paths.empty() || std::ranges::any_of(paths, [&](const auto& path) {
                          return overlap(path, link.path);
                        });
    if (needed)
      for (auto& object : TRY(list_all(exchange, link.repository)))
        target.listing.emplace(object.key, std::move(object));
    targets.push_back(std::move(target));
  }
  return targets;
}

// Returns the key of a path in the first target that contains it; nullptr if none does.
const Target* target_of(const std::vector<Target>& targets, const std::string& path,
                        std::string& key) {
  for (const Target& target : targets) {
    if (!contains(target.link->path, path)) continue;
    const size_t skipped = target.link->path.empty() ? 0 : target.link->path.size() + 1;
    if (path.size() < skipped) continue;
    key = target.link->repository.key + path.substr(skipped);
    return &target;
  }
  return nullptr;
}

// Exports a file, unless its target or the link that imported it has it. If the file has not
// changed since its last exchange but the object has, the newer object is kept.
Result<void> export_one(const Exchange& exchange, const std::vector<Target>& targets,
                        const std::vector<Target>& origins, const std::string& path) {
  std::string key;
  const OpenFile file = TRY(exchange.content.read(path).in(path));
  for (const auto* places : {&targets, &origins}) {
    const Target* place = target_of(*places, path, key);
    if (!place) continue;
    const auto found = place->listing.find(key);
    if (found == place->listing.end()) continue;
    const bool unchanged = file.unchanged_since == LastExchange::imported ||
                           (file.unchanged_since == LastExchange::exported && places == &targets);
    if (unchanged || TRY(is_same(exchange, place->link->repository.bucket, found->second, file)))
      return {};
  }
  const Target* target = target_of(targets, path, key);
  if (!target) return {};
  return put_file(exchange, path, target->link->repository.bucket, key);
}

// Plans in its own scope, which frees the lists of objects and files: an exchange may take hours.
Result<ImportPlan> plan_of(const Exchange& exchange, const Link& link,
                           const std::vector<std::string>& paths, ImportMode mode) {
  const auto listed = TRY(list_all(exchange, link.repository));
  const Files present =
      TRY(exchange.content.list(link.path.empty() ? paths : std::vector{link.path},
                                [](const FileFailure&) {}, {.cancelled = exchange.cancelled}));
  return plan_import(listed, link.repository.key, link.path, paths, present, mode);
}

}  // namespace

Result<ExchangeResult> import_objects(const Exchange& exchange, const Link& link,
                                      const std::vector<std::string>& paths, ImportMode mode) {
  Tally tally(exchange.progress);
  const ImportPlan plan = TRY(plan_of(exchange, link, paths, mode));
  if (plan.bytes > exchange.capacity_bytes)
    return exhausted("s3://" + link.repository.bucket + "/" + link.repository.key + " has " +
                     human_bytes(plan.bytes) + ", more than the file system's capacity of " +
                     human_bytes(exchange.capacity_bytes));
  uint64_t bytes = 0;
  for (const Fetch& each : plan.fetches) bytes = saturating_add(bytes, each.bytes);
  exchange.progress.files += int64_t(plan.fetches.size() + plan.present + plan.failures.size());
  exchange.progress.bytes += bytes;
  for (size_t i = 0; i < plan.present; ++i) tally.succeed();
  for (const auto& failure : plan.failures) tally.fail(failure);
  TRY(for_each_file(
      exchange, tally, plan.fetches.size(), [&](size_t i) { return plan.fetches[i].path; },
      [&](size_t i) { return fetch(exchange, link, plan.fetches[i], i); }));
  TRY(exchange.content.sync());
  ExchangeResult result = tally.take();
  result.misnamed = int64_t(plan.failures.size());
  return result;
}

Result<ExchangeResult> export_files(const Exchange& exchange, const std::vector<Link>& links,
                                    const std::vector<Link>& imports,
                                    const std::vector<std::string>& paths) {
  Tally tally(exchange.progress);
  const auto targets = TRY(list_targets(exchange, links, paths));
  const auto origins = TRY(list_targets(exchange, imports, paths));
  const Files files =
      TRY(exchange.content.list(paths, [&](FileFailure failure) { tally.fail(std::move(failure)); },
                                {.cancelled = exchange.cancelled}));
  std::vector<const std::string*> wanted;  // in `files`
  std::string key;
  for (const auto& [path, facts] : files) {
    if (!target_of(targets, path, key)) continue;
    wanted.push_back(&path);
    exchange.progress.bytes += facts.bytes;
  }
  exchange.progress.files += int64_t(wanted.size());
  TRY(for_each_file(
      exchange, tally, wanted.size(), [&](size_t i) { return *wanted[i]; },
      [&](size_t i) { return export_one(exchange, targets, origins, *wanted[i]); }));
  return tally.take();
}

Result<std::string> write_report(objects::Objects& objects, const RepositoryTask& task,
                                 const ExchangeResult& result) {
  const auto at = TRY(parse_repository(task.report));
  const std::string name = task.kind == TaskKind::import_files ? "report.csv" : "failures.csv";
  const std::string key = at.key + task.id + "/" + name;
  std::string text;
  for (const auto& failure : result.failures) text += report_line(failure);
  objects::PutOptions options;
  options.content_type = "text/csv";
  TRY(objects::write_all(objects, at.bucket, key, text, options).in("writing the report"));
  return "s3://" + at.bucket + "/" + key;
}

}  // namespace trainyard::file_systems
