// Selects the items of a list for a Describe request: by its filters, then one page.
//
//   constexpr Attribute<aws::Vpc> kAttributes[] = {
//       {"vpc-id", [](const aws::Vpc& vpc) { return texts(vpc.vpc_id); }}, ..
//   };
//   TRY(keep_matching(in.filters, kAttributes, shown));
//   out.vpcs = TRY(page_of(in, std::move(shown), id_of, out.next_token));
//
// A filter accepts items that have one of its values. In values, '*' stands for any characters and
// '?' for one. Lists of items with tags also have the filters "tag:KEY" and "tag-key".
//
// Threads: pure functions. Errors: EC2's.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ec2/failures.hpp"
#include "shapes/ec2.hpp"

namespace trainyard::api::ec2 {

namespace aws = shapes::ec2;

using Texts = std::vector<std::string>;

inline Texts texts(const std::optional<std::string>& value) {
  return value ? Texts{*value} : Texts();
}
inline Texts texts(const std::optional<bool>& value) {
  return value ? Texts{*value ? "true" : "false"} : Texts();
}
inline Texts texts(const std::optional<int64_t>& value) {
  return value ? Texts{std::to_string(*value)} : Texts();
}

template <class T>
struct Attribute {
  std::string_view name;  // of the filter
  Texts (*values)(const T&);
};

inline constexpr size_t kFilterValuesMax = 200;        // of one request, as AWS
inline constexpr size_t kFilterValueBytesMax = 1'024;  // a tag's value has 256 characters
inline constexpr size_t kPageMax = 1'000;              // items of a page, as AWS

using FilterList = std::optional<std::vector<aws::Filter>>;

// Checks the names of filters and the number of their values. `known`: returns whether the list has
// a filter of that name.
Outcome<Done> check_filters(const FilterList& filters,
                            const std::function<bool(std::string_view)>& known);
bool matches_filter(const aws::Filter& filter, const Texts& values);
Failure invalid_filter(std::string_view name);

// Returns an item's values for the filters "tag:KEY" and "tag-key".
Texts tag_values(const std::vector<aws::Tag>& tags, std::string_view filter);
inline bool is_tag_filter(std::string_view name) {
  return name == "tag-key" || name.starts_with("tag:");
}

template <class T, size_t count>
Outcome<Done> keep_matching(const FilterList& filters, const Attribute<T> (&attributes)[count],
                            std::vector<T>& items) {
  constexpr bool kTagged = requires(const T& item) { item.tags; };
  const auto find = [&](std::string_view name) {
    return std::ranges::find(attributes, name, &Attribute<T>::name);
  };
  TRY(check_filters(filters, [&](std::string_view name) {
    return (kTagged && is_tag_filter(name)) || find(name) != std::end(attributes);
  }));
  if (!filters) return Done{};
  for (const aws::Filter& filter : *filters)
    std::erase_if(items, [&](const T& item) {
      if constexpr (kTagged)
        if (is_tag_filter(*filter.name))
          return !item.tags || !matches_filter(filter, tag_values(*item.tags, *filter.name));
      return !matches_filter(filter, find(*filter.name)->values(item));
    });
  return Done{};
}

// Converts a token to the key after which the page begins, and back. Errors: InvalidNextToken.
Outcome<std::string> page_after(const std::optional<std::string>& token);
std::string token_after(const std::string& key);

// Sorts a list by `key`, which returns a unique text for each item, and cuts a page out of it.
// Items that are added or removed between two pages do not shift the others. `usual`: the number of
// items in a page if the request has no limit.
template <class In, class Item, class Key>
Outcome<std::vector<Item>> page_of(const In& in, std::vector<Item> all, Key key,
                                   std::optional<std::string>& next_token,
                                   size_t usual = kPageMax) {
  const std::string after = TRY(page_after(in.next_token));
  std::ranges::sort(all, {}, key);
  const auto begin = std::ranges::upper_bound(all, after, {}, key);
  const size_t wanted = in.max_results && *in.max_results > 0 ? size_t(*in.max_results) : usual;
  const auto end = begin + ptrdiff_t(std::min({wanted, kPageMax, size_t(all.end() - begin)}));
  if (end != all.end()) next_token = token_after(std::invoke(key, *(end - 1)));
  return std::vector<Item>(std::make_move_iterator(begin), std::make_move_iterator(end));
}

}  // namespace trainyard::api::ec2
