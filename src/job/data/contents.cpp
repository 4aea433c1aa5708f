#include "data/contents.hpp"

#include <algorithm>
#include <memory>

#include "data/manifest.hpp"
#include "data/permutation.hpp"

namespace trainyard::data {

Result<Contents> Contents::of_lines(std::string text, std::vector<std::string> attribute_names) {
  Contents contents;
  contents.text_ = std::move(text);
  contents.attribute_names_ = std::move(attribute_names);
  for (const auto line : TRY(split_lines(contents.text_)))
    contents.lines_.push_back(
        {static_cast<size_t>(line.data() - contents.text_.data()), line.size()});
  return contents;
}

Result<std::vector<Item>> Contents::items_of(uint32_t number) const {
  std::vector<Item> items;
  if (!objects_.empty()) {
    items.push_back({"", objects_[number]});
    return items;
  }
  const auto line = std::string_view(text_).substr(lines_[number].begin, lines_[number].size);
  auto attributes = read_augmented_line(line, attribute_names_);
  if (!attributes)
    return std::move(attributes).error().in("the manifest's record " + std::to_string(number + 1));
  for (auto& attribute : *attributes)
    items.push_back({attribute.from ? "" : std::move(attribute.text), std::move(attribute.from)});
  return items;
}

Feed::Source Contents::epoch(uint64_t epoch, const Deal& deal) const {
  struct State {
    std::vector<uint32_t> order;
    size_t next = 0;
    std::vector<Item> items;  // of the current line, the next one last
  };
  // Shared by the copies of the source; the last one frees it.
  const auto state = std::make_shared<State>();
  state->order = permutation_of(static_cast<uint32_t>(size()), deal.seed, epoch);
  if (deal.sharded) state->order = share_of(state->order, deal.host, deal.hosts);
  return [this, state]() -> Result<std::optional<Item>> {
    while (state->items.empty()) {
      if (state->next == state->order.size()) return std::optional<Item>();
      state->items = TRY(items_of(state->order[state->next++]));
      std::reverse(state->items.begin(), state->items.end());
    }
    Item item = std::move(state->items.back());
    state->items.pop_back();
    return std::optional(std::move(item));
  };
}

}  // namespace trainyard::data
