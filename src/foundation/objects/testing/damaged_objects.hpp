// DamagedObjects flips a bit in the first bodies that are read, below the comparison with their
// checksums, as a network does that delivers wrong bytes.
//
// Threads: as the store's.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "objects/forwarding.hpp"
#include "objects/verifier.hpp"

namespace trainyard::objects {

// Flips a bit of the last byte that a reader returns, where a check is latest.
class FlippingReader final : public Reader {
 public:
  explicit FlippingReader(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {
    left_ = reader_->range().last + 1 - reader_->range().first;
  }
  const ObjectInfo& info() const override { return reader_->info(); }
  Range range() const override { return reader_->range(); }
  Result<size_t> read(std::span<char> buffer) override {
    const size_t got = TRY(reader_->read(buffer));
    left_ -= got;
    if (got > 0 && left_ == 0) buffer[got - 1] = static_cast<char>(buffer[got - 1] ^ 1);
    return got;
  }

 private:
  const std::unique_ptr<Reader> reader_;
  uint64_t left_;
};

class DamagedObjects final : public ForwardingObjects {
 public:
  using ForwardingObjects::ForwardingObjects;

  Result<std::unique_ptr<Reader>> get(const std::string& bucket, const std::string& key,
                                      std::optional<Range> range) override {
    ++gets;
    auto reader = TRY(ForwardingObjects::get(bucket, key, range));
    if (damaged > 0 && damaged-- > 0) reader = std::make_unique<FlippingReader>(std::move(reader));
    if (range) return reader;
    return verified(std::move(reader), "GET s3://" + bucket + "/" + key);
  }

  std::atomic<int> damaged{0};  // the number of further bodies to damage
  std::atomic<int> gets{0};
};

}  // namespace trainyard::objects
