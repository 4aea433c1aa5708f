// Bytes of wire messages, and of the order file.
//
// Frame = u32 little-endian length of what follows | u8 message kind | body. Bodies are fixed-order fields: integers
// little-endian, text as u32 length + bytes. Grammar with golden bytes: docs/formats/wire.md. Whatever arrives is
// hostile until decoded: short bodies and lengths past kFrameBytesMax are errors. What a later version may send is none:
// an unknown kind is read as Unknown, an unknown value as the one that stands for others, trailing fields are skipped.
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace trainyard::wire {

// One frame's payload (kind and body, without the length: links carry whole frames). Requires: not Unknown.
std::string encode(const Message& message);
// Numbers an encoded LogBatch or MetricBatch: an agent knows its number only when it is sent.
void set_number(std::string& payload, uint64_t number);
// Errors: corrupt, naming the message and field.
Result<Message> decode(std::string_view payload);

// The latest version that both ends of a link speak, of those that the agent names and [kVersionOldest, kVersion].
// Errors: conflict, with both ranges.
Result<uint32_t> common_version(const Hello& hello);
// "versions 1 to 2", "version 1".
std::string versions_text(const Hello& hello);
// What an agent says first. `order`: of the server, which may be of an earlier release.
Hello hello_of(const Order& order);

// The order file: JSON, so that an operator can read it.
std::string encode_order(const Order& order);
// Errors: corrupt, naming the member; conflict, when its version is not one that this program reads.
Result<Order> decode_order(std::string_view bytes);

}  // namespace trainyard::wire
