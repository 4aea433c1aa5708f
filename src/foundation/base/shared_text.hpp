// SharedText is immutable text whose copies share one string, so a message of a hundred thousand
// jobs is stored once.
//
// Threads: copies may be read and destroyed on any thread.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <utility>

namespace trainyard {

class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  SharedText(const char* text) : SharedText(std::string(text)) {}

  const std::string& str() const {
    static const std::string nothing;
    return text_ ? *text_ : nothing;
  }
  bool empty() const { return str().empty(); }

  friend bool operator==(const SharedText& a, const SharedText& b) {
    return a.text_ == b.text_ || a.str() == b.str();
  }
  friend std::ostream& operator<<(std::ostream& out, const SharedText& text) {
    return out << text.str();
  }

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace trainyard
