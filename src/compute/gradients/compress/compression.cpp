#include "gradients/compress/compression.hpp"

#include "base/enum_table.hpp"

namespace trainyard::gradients {
namespace {

constexpr EnumTable<Compression::Kind> kCompressions{"compression",
                                                     {{Compression::Kind::none, "none"},
                                                      {Compression::Kind::f16, "f16"},
                                                      {Compression::Kind::bf16, "bf16"},
                                                      {Compression::Kind::int8, "int8"},
                                                      {Compression::Kind::low_rank, "low_rank"}}};
static_assert(kEnumerators<Compression::Kind> == kCompressionsCount);

}  // namespace

std::string_view to_string(Compression::Kind kind) { return kCompressions.text(kind); }

std::string to_string(const Compression& compression) {
  std::string text(to_string(compression.kind));
  if (compression.kind == Compression::Kind::low_rank)
    text += " of " + std::to_string(compression.rank);
  return text;
}

}  // namespace trainyard::gradients
