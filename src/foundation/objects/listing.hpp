// Listing as S3 does it, over any ordered set of keys: prefix, delimiter, pages. Decides; the cursor reads.
//
// Threads: pure but for the cursor's calls.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

// Keys in byte order. Confined to one thread; asked with rising bounds only.
class Cursor {
 public:
  virtual ~Cursor() = default;

  // Whether one answer is enough for all keys that begin with `beginning`: they roll up into one prefix.
  using RollsUp = std::function<bool(std::string_view beginning)>;

  // The first key that is not less than `bound`. In its place a proper beginning of it may be answered that
  // is not less than `bound` and for which rolls_up holds: a tree then need not look for the first leaf below
  // it. Nothing: there is no such key.
  virtual Result<std::optional<std::string>> at_or_after(const std::string& bound,
                                                         const RollsUp& rolls_up) = 0;

  // What a listing shows of a key that was just answered; nothing when it has gone since.
  virtual Result<std::optional<ObjectInfo>> describe(const std::string& key) = 0;
};

// Ensures: at most query.keys_max entries; `next` is set exactly if there are more.
Result<ListPage> list_page(Cursor& cursor, const ListQuery& query);

// The least text that is greater than all that begin with `beginning`; "" when there is none.
std::string after_all_of(std::string beginning);

}  // namespace trainyard::objects
