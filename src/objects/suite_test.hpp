// What every implementation of Objects must do: suite_test.cpp runs it over each.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "base/random.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

class SetClock final : public Clock {
 public:
  Instant now() override { return now_; }
  std::chrono::nanoseconds monotonic() override { return now_.time_since_epoch(); }
  void advance(Duration by) { now_ += by; }

 private:
  Instant now_ = from_milliseconds(1'795'000'000'123);
};

// A fresh, empty Objects and whatever must live beside it.
struct Subject {
  std::shared_ptr<void> world;
  std::unique_ptr<Objects> objects;
};
struct Maker {
  std::string name;
  std::function<Subject(Clock&, Random&)> make;
  friend void PrintTo(const Maker& maker, std::ostream* out) { *out << maker.name; }
};

class ObjectsSuite : public testing::TestWithParam<Maker> {
 protected:
  void SetUp() override {
    subject_ = GetParam().make(clock_, random_);
    if (!subject_.objects) GTEST_SKIP() << "cannot be made on this machine";
    ASSERT_TRUE(objects().create_bucket("bucket", "eu-west-1"));
  }
  void TearDown() override { subject_.objects.reset(); }

  Objects& objects() { return *subject_.objects; }
  ObjectInfo put(const std::string& key, const std::string& bytes, const PutOptions& options = {}) {
    auto info = write_all(objects(), "bucket", key, bytes, options);
    EXPECT_TRUE(info) << key << ": " << info.error().message;
    return info ? *info : ObjectInfo{};
  }
  std::string get(const std::string& key) {
    auto bytes = read_all(objects(), "bucket", key, 256 << 20);
    return bytes ? *bytes : std::string(fault_of(bytes.error()));
  }
  // Keys and rolled-up prefixes of all pages, one line each, a blank line between pages.
  std::string pages(ListQuery query) {
    std::string text;
    for (int page = 0; page < 10'000; ++page) {
      auto got = objects().list("bucket", query);
      if (!got) return got.error().message;
      for (const auto& object : got->objects) text += object.key + "\n";
      for (const auto& prefix : got->prefixes) text += "[" + prefix + "]\n";
      if (got->next.empty()) return text;
      text += "\n";
      query.start_after = got->next;
    }
    return "endless";
  }

  SetClock clock_;
  SeededRandom random_{7};
  Subject subject_;
};

}  // namespace trainyard::objects
