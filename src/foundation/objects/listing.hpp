// Lists keys as S3 does, over any ordered set of keys: prefix, delimiter, pages. The cursor does
// the reading.
//
// Threads: pure except for the cursor's calls.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

// Iterates keys in byte order. Confined to one thread; called with increasing bounds only.
class Cursor {
 public:
  virtual ~Cursor() = default;

  // True if all keys that begin with `beginning` roll up into one prefix, so that one result is
  // enough for them.
  using RollsUp = std::function<bool(std::string_view beginning)>;

  // Returns the first key that is not less than `bound`; or instead a proper beginning of it that
  // is not less than `bound` and for which rolls_up holds: a tree then need not search the first
  // leaf below it. Nothing: there is no such key.
  virtual Result<std::optional<std::string>> at_or_after(const std::string& bound,
                                                         const RollsUp& rolls_up) = 0;

  // Returns the listing's entry for a key that was just returned; nothing if it has been removed
  // since.
  virtual Result<std::optional<ObjectInfo>> describe(const std::string& key) = 0;
};

// Returns what a listing has of an object.
ObjectInfo listed(const std::string& key, const ObjectInfo& info);

// Ensures: at most query.keys_max entries; `next` is set exactly if there are more.
Result<ListPage> list_page(Cursor& cursor, const ListQuery& query);

// Returns the prefix that a key rolls up into: up to and including the first delimiter after
// `prefix`, with which the key begins; "" if the key is listed itself.
std::string_view rolled_up(std::string_view key, std::string_view prefix,
                           std::string_view delimiter);

// Returns the least text that is greater than all that begin with `beginning`; "" when there is
// none.
std::string after_all_of(std::string beginning);

}  // namespace trainyard::objects
