#include "collectives/compress/compression.hpp"

namespace trainyard::collectives {

std::string_view to_string(Compression::Kind kind) {
  constexpr std::string_view names[compressions_count] = {"none", "f16", "bf16"};
  return names[size_t(kind)];
}

}  // namespace trainyard::collectives
