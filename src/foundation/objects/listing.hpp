// Lists keys as S3 does (prefix, delimiter, pages) from any ordered set of keys, which a Cursor
// reads.
//
// Example: the keys a/1, a/2 and b, with the delimiter "/". rolls_up("a/") is true, because all
// keys with the prefix "a/" are one entry of the listing. list_page() calls
//
//   at_or_after("", rolls_up)    a tree returns "a/" without searching for the first key below it;
//                                a map returns "a/1", which is listed as "a/"
//   at_or_after("a0", rolls_up)  "a0" is first_key_after_prefix("a/"); returns "b"
//   at_or_after("b\0", rolls_up) returns nullopt
//
// and returns the object "b" and the common prefix "a/".
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

// A Cursor iterates keys in byte order. Confined to one thread; called with increasing bounds only.
class Cursor {
 public:
  virtual ~Cursor() = default;

  // Returns true if all keys with this prefix are one entry of the listing, so one result is enough
  // for them.
  using RollsUp = std::function<bool(std::string_view prefix)>;

  // Returns the first key that is not less than `bound`; nullopt if there is none. Instead of the
  // key it may return a prefix of it that is not less than `bound` and for which rolls_up returns
  // true: a tree then need not search for the first key below the prefix.
  virtual Result<std::optional<std::string>> at_or_after(const std::string& bound,
                                                         const RollsUp& rolls_up) = 0;

  // Returns the entry of the listing for a key that was just returned; nullopt if the key has been
  // removed since.
  virtual Result<std::optional<ObjectInfo>> describe(const std::string& key) = 0;
};

// Returns the entry of a listing for an object: the properties that S3 lists.
ObjectInfo listed(const std::string& key, const ObjectInfo& info);

// Ensures: at most query.keys_max entries; `next` is set exactly if there are more.
Result<ListPage> list_page(Cursor& cursor, const ListQuery& query);

// Returns the common prefix as which a key is listed: up to and including the first delimiter after
// `prefix`; "" if the key itself is listed. Requires: the key starts with `prefix`.
std::string_view rolled_up(std::string_view key, std::string_view prefix,
                           std::string_view delimiter);

// Returns the smallest text that is greater than all texts with this prefix; "" if there is none.
std::string first_key_after_prefix(std::string prefix);

}  // namespace trainyard::objects
