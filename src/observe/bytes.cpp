#include "observe/bytes.hpp"

#include <array>

namespace trainyard::observe {
namespace {

// Eight tables: eight bytes a step, some 1.5 GB/s; the table of one byte alone would cost more than the
// write.
constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    tables[0][i] = crc;
  }
  for (size_t t = 1; t < 8; ++t)
    for (size_t i = 0; i < 256; ++i) tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
  return tables;
}
constexpr auto kTables = make_tables();

}  // namespace

uint32_t crc32(std::string_view bytes) {
  uint32_t crc = ~0u;
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const uint32_t low = get<uint32_t>(bytes, at) ^ crc, high = get<uint32_t>(bytes, at + 4);
    crc = kTables[7][low & 255] ^ kTables[6][low >> 8 & 255] ^ kTables[5][low >> 16 & 255] ^
          kTables[4][low >> 24] ^ kTables[3][high & 255] ^ kTables[2][high >> 8 & 255] ^
          kTables[1][high >> 16 & 255] ^ kTables[0][high >> 24];
  }
  for (; at < bytes.size(); ++at) crc = crc >> 8 ^ kTables[0][(crc ^ uint8_t(bytes[at])) & 255];
  return ~crc;
}

}  // namespace trainyard::observe
