// decoder: src/control_plane/launch/kubernetes/watch_events.cpp
//
// Reads any bytes as what an API server sends in a watch, in pieces whose size the first byte says,
// and applies the events to each cache: reading must terminate and respect the limits, and must not
// depend on the pieces.
#include <cstdint>

#include "base/check.hpp"
#include "domain/limits.hpp"
#include "launch/kubernetes/watch_lines.hpp"
#include "launch/kubernetes/watched_objects.hpp"

using namespace trainyard;
using namespace trainyard::launch;

namespace {

// Returns the number of events before the first error.
template <class Cache>
size_t apply_events(std::string_view text, size_t piece_bytes, Cache& cache) {
  WatchLines lines;
  size_t events = 0;
  while (!text.empty()) {
    const auto piece = text.substr(0, piece_bytes);
    text.remove_prefix(piece.size());
    const auto applied = lines.append(piece, [&](std::string_view line) -> Result<void> {
      const auto event = TRY(read_event<typename Cache::Object>(line, "3fa91c"));
      CHECK(!event.identity.version.empty(), "an event has a version");
      CHECK(event.identity.version.size() <= kKubernetesVersionBytesMax, "it has its limit");
      TRY(cache.apply(event));
      ++events;
      return {};
    });
    if (!applied) break;
  }
  CHECK(cache.objects().size() <= events, "an event adds one object at most");
  return events;
}

template <class Cache>
void check(std::string_view text, size_t piece_bytes) {
  Cache in_pieces, whole;
  const size_t events = apply_events(text, piece_bytes, in_pieces);
  CHECK(apply_events(text, text.size(), whole) == events, "pieces make no difference");
  CHECK(in_pieces.objects() == whole.objects(), "pieces make no difference");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece_bytes = size_t(data[0]) * 4 + 1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  check<WatchedJobs>(text, piece_bytes);
  check<WatchedPods>(text, piece_bytes);
  check<WatchedObjects<KubernetesNode>>(text, piece_bytes);
  check<WatchedObjects<KubernetesUse>>(text, piece_bytes);
  check<WatchedObjects<KubernetesWorkload>>(text, piece_bytes);
  return 0;
}
