// Bytes of wire messages, and of the order file.
//
// Frame = u32 little-endian length of what follows | u8 message kind | body. Bodies are fixed-order fields: integers
// little-endian, text as u32 length + bytes. Grammar with golden bytes: docs/formats/wire.md. Whatever arrives is
// hostile until decoded: unknown kinds, short bodies, trailing bytes and lengths past kFrameBytesMax are errors.
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "wire/messages.hpp"

namespace trainyard::wire {

// One frame's payload (kind and body, without the length: links carry whole frames).
std::string encode(const Message& message);
// Numbers an encoded LogBatch or MetricBatch: an agent knows its number only when it is sent.
void set_number(std::string& payload, uint64_t number);
// Errors: corrupt, naming the message and field.
Result<Message> decode(std::string_view payload);

// The order file: JSON, so that an operator can read it.
std::string encode_order(const Order& order);
Result<Order> decode_order(std::string_view bytes);

}  // namespace trainyard::wire
