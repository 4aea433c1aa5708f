#include "gradients/compress/compression.hpp"

namespace trainyard::gradients {

std::string_view to_string(Compression::Kind kind) {
  constexpr std::string_view names[compressions_count] = {"none", "f16", "bf16", "int8", "low_rank"};
  return names[size_t(kind)];
}

std::string to_string(const Compression& compression) {
  std::string text(to_string(compression.kind));
  if (compression.kind == Compression::Kind::low_rank) text += " of " + std::to_string(compression.rank);
  return text;
}

}  // namespace trainyard::gradients
