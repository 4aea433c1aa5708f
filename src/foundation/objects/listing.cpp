#include "objects/listing.hpp"

#include <algorithm>

namespace trainyard::objects {

std::string_view rolled_up(std::string_view key, std::string_view prefix,
                           std::string_view delimiter) {
  if (delimiter.empty() || key.size() <= prefix.size()) return "";
  const size_t at = key.find(delimiter, prefix.size());
  return at == key.npos ? "" : key.substr(0, at + delimiter.size());
}

std::string first_key_after_prefix(std::string prefix) {
  while (!prefix.empty() && uint8_t(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = char(uint8_t(prefix.back()) + 1);
  return prefix;
}

ObjectInfo listed(const std::string& key, const ObjectInfo& info) {
  ObjectInfo entry{.key = key, .bytes = info.bytes, .etag = info.etag, .modified = info.modified};
  if (const auto found = info.headers.find(kStorageClassHeader); found != info.headers.end())
    entry.headers.insert(*found);
  return entry;
}

Result<ListPage> list_page(Cursor& cursor, const ListQuery& query) {
  ListPage page;
  if (query.keys_max == 0) return page;

  std::string bound = query.prefix;
  if (!query.start_after.empty()) {
    // After a page that ended with a common prefix, skip all keys with that prefix.
    const bool after_a_prefix =
        query.start_after.starts_with(query.prefix) &&
        rolled_up(query.start_after, query.prefix, query.delimiter) == query.start_after;
    const std::string next =
        after_a_prefix ? first_key_after_prefix(query.start_after) : query.start_after + '\0';
    if (next.empty()) return page;
    bound = std::max(bound, next);
  }

  const auto rolls_up = [&](std::string_view prefix) {
    return prefix.starts_with(query.prefix) &&
           !rolled_up(prefix, query.prefix, query.delimiter).empty();
  };
  std::string last;  // key or prefix that was added last
  for (;;) {
    const auto key = TRY(cursor.at_or_after(bound, rolls_up));
    if (!key || !key->starts_with(query.prefix)) return page;
    const std::string prefix(rolled_up(*key, query.prefix, query.delimiter));
    if (page.objects.size() + page.prefixes.size() == query.keys_max) {
      page.next = last;
      return page;
    }
    if (prefix.empty()) {
      auto info = TRY(cursor.describe(*key));
      bound = *key + '\0';
      if (!info) continue;
      last = *key;
      page.objects.push_back(std::move(*info));
    } else {
      last = prefix;
      page.prefixes.push_back(prefix);
      bound = first_key_after_prefix(prefix);
      if (bound.empty()) return page;
    }
  }
}

}  // namespace trainyard::objects
