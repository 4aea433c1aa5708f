// Computes CRCs of records on disk, and S3's checksums CRC32, CRC32C and CRC64NVME.
//
// All are reflected; the register starts as all ones and is inverted at the end. Eight tables
// process eight bytes per step ("slicing by 8", Kounavis and Berry 2005), at about 1.5 GB/s:
// table[k][b] is the CRC of byte b followed by k zero bytes, so eight independent look-ups replace
// eight dependent ones. Longer texts are reduced to 16 bytes first (crc_reduce.hpp).
//
// Threads: pure.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/bytes/crc_reduce.hpp"

namespace trainyard {

template <class WordType, WordType polynomial>
struct Crc {
  using Word = WordType;

  // Returns the register after `bytes`. The register starts as ~0; its inverse is the checksum.
  static Word run(Word sum, std::string_view bytes) {
    if (bytes.size() < kReducedBytesMin || !kReducesCrc) return run_tables(sum, bytes);
    const ReducedBytes reduced = reduce_crc(sum, bytes, kReductionConstants);
    return run_word(run_word(0, reduced.first), reduced.second);
  }
  // Equals run(), by the tables alone.
  static Word run_tables(Word sum, std::string_view bytes) {
    static_assert(std::endian::native == std::endian::little);
    const Table& t = kTable;
    const char* at = bytes.data();
    size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      sum = run_word(sum, word);
    }
    if (left >= 4) {
      uint32_t word;
      std::memcpy(&word, at, 4);
      word ^= uint32_t(sum);
      sum = Word(uint64_t(sum) >> 32) ^ t[3][word & 255] ^ t[2][word >> 8 & 255] ^
            t[1][word >> 16 & 255] ^ t[0][word >> 24];
      at += 4, left -= 4;
    }
    for (; left > 0; ++at, --left) sum = (sum >> 8) ^ t[0][(sum ^ uint8_t(*at)) & 255];
    return sum;
  }
  static Word of(std::string_view bytes) { return ~run(~Word(0), bytes); }

  // Computes of(a b) from of(a), of(b) and b's length: of(a) * x^(8 |b|) + of(b), as the initial
  // and final ones cancel.
  static Word combine(Word a, Word b, uint64_t b_bytes) {
    constexpr Word top = Word(1) << (sizeof(Word) * 8 - 1);
    Word power = top;        // x^0
    Word square = top >> 8;  // x^8
    for (; b_bytes != 0; b_bytes >>= 1) {
      if (b_bytes & 1) power = multiply(power, square);
      square = multiply(square, square);
    }
    return multiply(a, power) ^ b;
  }

 private:
  using Table = std::array<std::array<Word, 256>, 8>;

  static constexpr Table make_table() {
    Table table{};
    for (size_t byte = 0; byte < 256; ++byte) {
      Word sum = Word(byte);
      for (int bit = 0; bit < 8; ++bit) sum = (sum & 1) ? (sum >> 1) ^ polynomial : sum >> 1;
      table[0][byte] = sum;
    }
    for (size_t byte = 0; byte < 256; ++byte)
      for (size_t k = 1; k < 8; ++k)
        table[k][byte] = (table[k - 1][byte] >> 8) ^ table[0][table[k - 1][byte] & 255];
    return table;
  }

  static Word run_word(Word sum, uint64_t word) {
    const Table& t = kTable;
    word ^= sum;
    return t[7][word & 255] ^ t[6][word >> 8 & 255] ^ t[5][word >> 16 & 255] ^
           t[4][word >> 24 & 255] ^ t[3][word >> 32 & 255] ^ t[2][word >> 40 & 255] ^
           t[1][word >> 48 & 255] ^ t[0][word >> 56];
  }

  // Returns x^exponent modulo the polynomial, in the highest bits.
  static constexpr uint64_t power_of_x(int exponent) {
    Word power = Word(1) << (sizeof(Word) * 8 - 1);
    for (int i = 0; i < exponent; ++i) power = (power & 1) ? (power >> 1) ^ polynomial : power >> 1;
    return uint64_t(power) << (64 - 8 * sizeof(Word));
  }
  static constexpr ReductionConstants make_reduction_constants() {
    return {power_of_x(191), power_of_x(127)};
  }

  // Multiplies two registers as polynomials over GF(2), modulo the CRC's polynomial. In the
  // reflected form the highest bit is the coefficient of x^0.
  static Word multiply(Word a, Word b) {
    constexpr Word top = Word(1) << (sizeof(Word) * 8 - 1);
    Word product = 0;
    for (Word bit = top; bit != 0; bit >>= 1) {
      if (a & bit) product ^= b;
      b = (b & 1) ? (b >> 1) ^ polynomial : b >> 1;
    }
    return product;
  }

  static const Table kTable;
  static const ReductionConstants kReductionConstants;
};

template <class WordType, WordType polynomial>
inline const typename Crc<WordType, polynomial>::Table Crc<WordType, polynomial>::kTable =
    make_table();
template <class WordType, WordType polynomial>
inline const ReductionConstants Crc<WordType, polynomial>::kReductionConstants =
    make_reduction_constants();

using Crc32 = Crc<uint32_t, 0xedb88320>;   // IEEE 802.3
using Crc32c = Crc<uint32_t, 0x82f63b78>;  // Castagnoli
using Crc64Nvme = Crc<uint64_t, 0x9a6c9329ac4bc9b5>;

}  // namespace trainyard
