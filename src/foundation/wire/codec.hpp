// Encodes and decodes wire messages, and the order file.
//
// Frame = u32 little-endian length of the rest | u8 message kind | body. Bodies are fixed-order
// fields: integers little-endian, text as u32 length + bytes. Grammar with golden bytes:
// docs/formats/wire.md. Input is hostile until decoded: short bodies and lengths past
// kFrameBytesMax are errors. Additions of later versions are accepted: an unknown kind becomes
// Unknown, an unknown value the default of its enumeration, and trailing fields are skipped.
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace trainyard::wire {

// Returns one frame's payload (kind and body, without the length: links carry whole frames).
// Requires: not Unknown.
std::string encode(const Message& message);
// Sets the number in an encoded LogBatch or MetricBatch. An agent assigns it only when it sends the
// batch.
void set_number(std::string& payload, uint64_t number);
// Errors: corrupt, naming the message and field.
Result<Message> decode(std::string_view payload);

// Returns the latest version that both ends of a link support: the agent's range and
// [kVersionOldest, kVersion].
// Errors: conflict, with both ranges.
Result<uint32_t> common_version(const Hello& hello);
// "versions 1 to 2", "version 1".
std::string versions_text(const Hello& hello);
// Makes the first message of an agent. The server that wrote `order` may be an earlier release.
Hello hello_of(const Order& order);

// The order file: JSON, so that an operator can read it.
std::string encode_order(const Order& order);
// Errors: corrupt, naming the member; conflict, for a version that this program cannot read.
Result<Order> decode_order(std::string_view bytes);

}  // namespace trainyard::wire
