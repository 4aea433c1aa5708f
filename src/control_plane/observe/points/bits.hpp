// Writes and reads numbers of 0 to 64 bits in byte strings, the highest bit first.
//
// Threads: a writer and a reader are confined to one thread. Errors: a reader that reaches the end
// of its bytes returns zeros and has failed(). Lifetime: the bytes outlive writer and reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainyard::observe {

class BitWriter {
 public:
  explicit BitWriter(std::string& bytes) : bytes_(bytes) {}

  // Writes the lowest `count` bits of `value`.
  void write(uint64_t value, unsigned count) {
    if (count > 32) {
      write(value >> 32, count - 32);
      count = 32;
    }
    pending_ = pending_ << count | (value & ((uint64_t{1} << count) - 1));
    used_ += count;
    while (used_ >= 8) {
      used_ -= 8;
      bytes_ += char(pending_ >> used_);
    }
  }
  // Fills the last byte with zeros.
  void finish() {
    if (used_ > 0) write(0, 8 - used_);
  }

  // A position that a writer can return to.
  struct Mark {
    size_t bytes;
    uint64_t pending;
    unsigned used;
  };
  Mark mark() const { return {bytes_.size(), pending_, used_}; }
  void return_to(const Mark& mark) {
    bytes_.resize(mark.bytes);
    pending_ = mark.pending;
    used_ = mark.used;
  }
  // The bytes after finish().
  size_t size() const { return bytes_.size() + (used_ > 0 ? 1 : 0); }

 private:
  std::string& bytes_;
  uint64_t pending_ = 0;  // its lowest used_ bits are not in bytes_ yet
  unsigned used_ = 0;     // less than 8
};

class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t read(unsigned count) {
    if (count > 32) {
      const uint64_t high = read(count - 32);
      return high << 32 | read(32);
    }
    while (have_ < count) {
      if (at_ == bytes_.size()) {
        failed_ = true;
        return 0;
      }
      pending_ = pending_ << 8 | uint8_t(bytes_[at_++]);
      have_ += 8;
    }
    have_ -= count;
    return pending_ >> have_ & ((uint64_t{1} << count) - 1);
  }
  bool failed() const { return failed_; }
  // True if only zeros of the last byte are left.
  bool at_end() const {
    return at_ == bytes_.size() && have_ < 8 && (pending_ & ((uint64_t{1} << have_) - 1)) == 0;
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  uint64_t pending_ = 0;  // its lowest have_ bits were not read yet
  unsigned have_ = 0;
  bool failed_ = false;
};

}  // namespace trainyard::observe
