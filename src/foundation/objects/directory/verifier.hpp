// Verifier compares the bytes of a whole object with the cheapest checksum that is stored with it.
//
// Threads: confined to one.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "objects/checksum.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

class Verifier {
 public:
  // Verifies an object or a part whose bytes are added in order. An object whose parts an early
  // version joined may have no checksum of the whole: then nothing is compared.
  explicit Verifier(const ObjectInfo& info);
  void add(std::span<const char> bytes) {
    if (sum_) sum_->add(bytes);
  }
  // Errors: corrupt. Requires: called once, after the last byte.
  Result<void> finish();
  bool compares() const { return sum_ != nullptr; }

 private:
  std::string algorithm_;
  std::string expected_;  // bytes of the checksum
  std::unique_ptr<Checksum> sum_;
};

}  // namespace trainyard::objects
