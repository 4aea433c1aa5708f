// Reads the bytes of one object, with retries. After an outage of the store, or a renewal of the
// keys, reading continues at the same byte if the object is unchanged.
//
// Threads: confined to one; a stop may be ordered from anywhere. Errors: those of the store;
// cancelled: stopped; unavailable: the outage was longer than kOutageMax; conflict: the object was
// replaced meanwhile; invalid: not gzip; corrupt: the object ended early, or (bytes_damaged) its
// bytes do not match its checksum, which is reported instead of the last ones.
// Lifetime: the arguments of open() must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "base/time.hpp"
#include "data/stop.hpp"
#include "objects/objects.hpp"

namespace trainyard::data {

// The longest outage: an embedded store is unavailable when the server is.
inline constexpr Duration kOutageMax = 1h;
inline constexpr Duration kOutagePause = 500ms;  // between two attempts
// The time within which renewed keys arrive; a longer refusal is an error.
inline constexpr Duration kRenewedKeysMax = 10s;

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
  uint64_t bytes() const { return reader_->info().bytes; }
  Result<size_t> read(std::span<char> buffer) override;

 private:
  ObjectStream(Clock& clock, Stop& stop) : clock_(clock), stop_(stop) {}
  // Returns true, after a pause, if this error is worth a retry.
  bool pause_before_retry(const Error& error);

  Clock& clock_;
  Stop& stop_;
  std::unique_ptr<objects::Reader> reader_;
  uint64_t at_ = 0;
  std::optional<std::chrono::nanoseconds> outage_began_;
};

// Decompresses gzip, of one member or several.
Result<std::unique_ptr<ByteStream>> decompressed(std::unique_ptr<ByteStream> compressed);

}  // namespace trainyard::data
