// Reads one object's bytes through outages of the store: when it is unavailable or its keys are
// being renewed, reading continues at the same byte afterwards, if the object is unchanged.
//
// Threads: confined to one; a stop may be ordered from anywhere. Errors: those of the store;
// cancelled: stopped; unavailable: the outage was longer than kAwayMax; conflict: the object was
// replaced meanwhile; invalid: not gzip; corrupt: the object ended early.
// Lifetime: the constructor's arguments must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "base/time.hpp"
#include "data/stop.hpp"
#include "objects/objects.hpp"

namespace trainyard::data {

// an embedded store is unavailable when the server is
inline constexpr Duration kAwayMax = 1h;
inline constexpr Duration kAwayPause = 500ms;  // between two attempts
// keys that are refused for longer are not being renewed
inline constexpr Duration kNewKeysMax = 10s;

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual Result<size_t> read(std::span<char> buffer) = 0;  // 0 at the end
};

class ObjectStream : public ByteStream {
 public:
  static Result<std::unique_ptr<ObjectStream>> open(objects::Objects& objects,
                                                    const objects::Location& from, Clock& clock,
                                                    Stop& stop);
  uint64_t bytes() const { return bytes_; }
  Result<size_t> read(std::span<char> buffer) override;

 private:
  ObjectStream(objects::Objects& objects, objects::Location from, Clock& clock, Stop& stop)
      : objects_(objects), from_(std::move(from)), clock_(clock), stop_(stop) {}
  Result<void> open_at(uint64_t offset);
  // Returns whether to retry after this error; it has paused then.
  bool worth_another_try(const Error& error);

  objects::Objects& objects_;
  const objects::Location from_;
  Clock& clock_;
  Stop& stop_;
  std::unique_ptr<objects::Reader> reader_;
  uint64_t bytes_ = 0, at_ = 0;
  std::string etag_;
  std::optional<std::chrono::nanoseconds> away_since_;
};

// Decompresses gzip, of one member or several.
Result<std::unique_ptr<ByteStream>> decompressed(std::unique_ptr<ByteStream> compressed);

}  // namespace trainyard::data
