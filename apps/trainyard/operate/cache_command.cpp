#include "trainyard/operate/cache_command.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "cache/block_cache.hpp"
#include "cli/cache_view.hpp"
#include "cli/status_block.hpp"
#include "mount/block_source.hpp"
#include "objects/s3_client.hpp"
#include "os/disk.hpp"
#include "os/parallel.hpp"
#include "trainyard/data_directory.hpp"
#include "trainyard/images.hpp"

namespace trainyard::apps {
namespace {

constexpr Duration kBarInterval = 200ms;  // fast enough for a smooth bar
constexpr size_t kWarmThreads = 16;       // enough to saturate a link to a distant object store

class CacheCommand {
 public:
  CacheCommand(const CacheOptions& options, ServerRecord record, cache::BlockCache& cache,
               os::Terminal& terminal, const cli::OutputStyle& style,
               const cli::OutputStyle& error_style, Clock& clock)
      : options_(options),
        record_(std::move(record)),
        cache_(cache),
        terminal_(terminal),
        style_(style),
        error_style_(error_style),
        clock_(clock) {}

  Result<void> list();
  Result<void> warm();
  Result<void> pin();
  Result<void> drop();

 private:
  Result<objects::Location> location() const;
  Result<std::vector<mount::MountedObject>> objects_below(objects::Objects& store,
                                                          const objects::Location& location) const;
  Result<void> fetch(mount::BlockSource& source, const std::vector<mount::MountedObject>& objects);
  Result<void> check_capacity(const cache::HeldPin& held) const;
  Result<void> check_space() const;

  // The fetching threads set the status; the main thread shows it.
  void set_status(const std::string& text) {
    const MutexLock lock(mutex_);
    status_ = text;
  }
  std::string status() {
    const MutexLock lock(mutex_);
    return status_;
  }

  const CacheOptions& options_;
  const ServerRecord record_;
  cache::BlockCache& cache_;
  os::Terminal& terminal_;
  const cli::OutputStyle& style_;
  const cli::OutputStyle& error_style_;
  Clock& clock_;
  Mutex mutex_;
  std::string status_ GUARDED_BY(mutex_);
};

// Returns the canonical URI of a location, which is the name of its pin.
std::string uri_of(const objects::Location& location) {
  return "s3://" + location.bucket + "/" + location.key;
}

Result<objects::Location> CacheCommand::location() const {
  if (options_.uri.empty())
    return invalid("`trainyard cache " + options_.action + "` needs s3://BUCKET/PREFIX");
  return objects::parse_s3_uri(options_.uri);
}

Result<void> CacheCommand::list() {
  objects::Location location;
  if (!options_.uri.empty()) location = TRY(objects::parse_s3_uri(options_.uri));
  const auto pins = TRY(cache_.pins());
  const auto pinned = cache::all_blocks(pins);
  cli::CacheView view;
  cli::CachedEntries entries(location.bucket, location.key);
  TRY(cache_.visit([&](const cache::CachedBlock& block) {
    view.bytes += block.bytes;
    entries.add({block.id.bucket, block.id.key, block.id.etag, block.bytes,
                 cache::contains(pinned, block.hash), block.used});
  }));
  view.entries = entries.all();
  view.bytes_max = cache_.settings().bytes_max;
  view.pinned_bytes = cache::bytes_of(pinned);
  view.pinned_bytes_max = cache_.pinned_bytes_max();
  for (const auto& each : pins)
    view.pins.push_back({each.pin.name, each.held, cache::bytes_of(each.pin.blocks)});
  return terminal_.write(options_.json ? dump(cli::to_json(view)) + "\n"
                                       : cli::cache_page(style_, view, clock_.now()));
}

Result<std::vector<mount::MountedObject>> CacheCommand::objects_below(
    objects::Objects& store, const objects::Location& location) const {
  std::vector<mount::MountedObject> found;
  objects::ListQuery query;
  query.prefix = location.key;
  do {
    const auto page = TRY(store.list(location.bucket, query).in("listing " + uri_of(location)));
    for (const auto& each : page.objects)
      found.push_back({location.bucket, each.key, each.key, each.bytes, each.etag, 0});
    query.start_after = page.next;
    if (terminal_.wait(Duration(0), false, -1).interrupted) return cancelled("interrupted");
  } while (!query.start_after.empty());
  if (found.empty()) return not_found("no objects under " + uri_of(location));
  return found;
}

// Rejects more blocks than the capacity: the last ones would evict the first ones.
Result<void> CacheCommand::check_capacity(const cache::HeldPin& held) const {
  if (held.bytes_pinned < held.bytes_wanted)
    return exhausted("the cache is too small: pinning needs " + human_bytes(held.bytes_wanted) +
                     ", but other pins hold " + human_bytes(held.bytes_of_others) + " of the " +
                     human_bytes(held.bytes_max) + " that can be pinned; remove a pin");
  return {};
}

// Fails if a fetched block could not be stored, so that fetching stops.
Result<void> CacheCommand::check_space() const {
  if (cache_.counts().without_space == 0) return {};
  const auto& settings = cache_.settings();
  const auto free = os::free_bytes(settings.directory);
  return exhausted("the disk of " + settings.directory +
                   " is nearly full: " + (free ? human_bytes(*free) + " are free, and " : "") +
                   human_bytes(settings.free_bytes_min) +
                   " must stay free; delete files, or use `trainyard cache drop`");
}

// Draws the progress bar and watches for Ctrl-C while other threads fetch.
Result<void> CacheCommand::fetch(mount::BlockSource& source,
                                 const std::vector<mount::MountedObject>& objects) {
  struct Piece {
    const mount::MountedObject* object;
    uint64_t number;
  };
  std::vector<Piece> pieces;
  int64_t total = 0;
  for (const auto& each : objects) {
    for (uint64_t first = 0; first < each.bytes; first += cache::kBlockBytes)
      pieces.push_back({&each, first / cache::kBlockBytes});
    total += int64_t(each.bytes);
  }
  std::atomic<int64_t> done = 0;
  std::atomic<bool> ended = false;
  Result<void> fetched;
  std::thread fetching([&] {
    fetched = os::for_each_in_parallel(pieces.size(), kWarmThreads, [&](size_t i) -> Result<void> {
      const auto block = TRY(source.get(*pieces[i].object, pieces[i].number)
                                 .in("fetching " + to_utf8(pieces[i].object->key)));
      done += int64_t(block->size());
      return check_space();
    });
    ended = true;
  });
  bool interrupted = false;
  cli::StatusBlock block(error_style_);
  while (!ended) {
    terminal_.write_error(block.show(status(), {{"", "objects", done, total, false}}));
    if (!terminal_.wait(kBarInterval, false, -1).interrupted) continue;
    interrupted = true;
    source.stop();
  }
  fetching.join();
  terminal_.write_error(block.clear());
  if (interrupted) return cancelled("interrupted after " + human_bytes(uint64_t(done.load())));
  return fetched;
}

Result<void> CacheCommand::warm() {
  const auto location = TRY(this->location());
  if (record_.agents_endpoint.empty())
    return unavailable("the server's record has no address for agents: restart the server");
  terminal_.watch_interrupts();
  objects::S3Settings settings;
  settings.endpoint =
      record_.objects_endpoint.empty() ? record_.endpoint : record_.objects_endpoint;
  settings.region = record_.region;
  settings.ca_bundle = options_.data_directory + "/tls/ca.pem";
  settings.keys = [this] { return signing::Keys{record_.key.id, record_.key.secret, ""}; };
  const auto store = TRY(objects::open_s3(std::move(settings), clock_));
  const auto objects = TRY(objects_below(*store, location));
  auto blocks = mount::blocks_of(record_.agents_endpoint, objects);
  // Pins the blocks until this process ends, so that later ones do not evict earlier ones.
  const auto held = TRY(cache_.hold("trainyard cache warm " + uri_of(location), blocks));
  TRY(check_capacity(*held));
  {
    mount::BlockSource source(*store, &cache_, clock_, {record_.agents_endpoint, kWarmThreads},
                              [this](const std::string& text) { set_status(text); });
    TRY(fetch(source, objects));
  }
  if (options_.pin) TRY(cache_.keep_pinned({uri_of(location), std::move(blocks)}));
  const auto counts = cache_.counts();
  const std::string text = uri_of(location) + ": " + counted(objects.size(), "object") + ", " +
                           human_bytes(held->bytes_wanted) + "; " + counted(counts.kept, "block") +
                           " fetched, " + std::to_string(counts.hits) + " already cached" +
                           (options_.pin ? "; pinned" : "");
  return terminal_.write(cli::paragraph(style_, text));
}

Result<void> CacheCommand::pin() {
  const auto location = TRY(this->location());
  const std::string uri = uri_of(location);
  if (options_.remove) {
    if (!TRY(cache_.unpin(uri))) return not_found("pin " + uri + " not found");
    return terminal_.write(cli::paragraph(style_, uri + " is no longer pinned"));
  }
  cache::Pin pin{uri, {}};
  TRY(cache_.visit([&](const cache::CachedBlock& block) {
    if (block.id.bucket == location.bucket && block.id.key.starts_with(location.key))
      pin.blocks.push_back({block.hash, uint32_t(block.bytes)});
  }));
  if (pin.blocks.empty())
    return not_found("the cache has no block under " + uri + ": use `trainyard cache warm --pin`");
  const size_t count = pin.blocks.size();
  TRY(cache_.keep_pinned(std::move(pin)));
  return terminal_.write(cli::paragraph(style_, uri + ": " + counted(count, "block") + " pinned"));
}

Result<void> CacheCommand::drop() {
  objects::Location location;
  if (options_.all == !options_.uri.empty())
    return invalid("`trainyard cache drop` needs s3://BUCKET/PREFIX, or --all");
  if (!options_.all) location = TRY(this->location());
  for (const auto& each : TRY(cache_.pins()))
    if (!each.held && (options_.all || each.pin.name.starts_with(uri_of(location))))
      TRY(cache_.unpin(each.pin.name));
  const auto dropped = TRY(cache_.drop([&](const cache::BlockId& id) {
    return options_.all || (id.bucket == location.bucket && id.key.starts_with(location.key));
  }));
  std::string text = counted(dropped.removed, "block") + " removed, " + human_bytes(dropped.bytes);
  if (dropped.held > 0) text += "; kept " + counted(dropped.held, "block") + " of running jobs";
  return terminal_.write(cli::paragraph(style_, text));
}

}  // namespace

Result<void> cache_command(const CacheOptions& options, os::Terminal& terminal,
                           const cli::OutputStyle& style, const cli::OutputStyle& error_style,
                           Clock& clock) {
  using Action = Result<void> (CacheCommand::*)();
  static constexpr std::pair<std::string_view, Action> kActions[] = {{"ls", &CacheCommand::list},
                                                                     {"warm", &CacheCommand::warm},
                                                                     {"pin", &CacheCommand::pin},
                                                                     {"drop", &CacheCommand::drop}};
  const auto* action =
      std::ranges::find(kActions, options.action, &std::pair<std::string_view, Action>::first);
  if (action == std::end(kActions))
    return invalid("unknown action '" + options.action +
                   "': use `trainyard cache ls`, warm, pin or drop");
  auto record = TRY(read_server_record(options.data_directory));
  const auto cache = TRY(cache::BlockCache::open(
      cache::tenth_of_disk(images_directory(options.data_directory) + ".blocks")));
  CacheCommand command(options, std::move(record), *cache, terminal, style, error_style, clock);
  return (command.*action->second)();
}

}  // namespace trainyard::apps
