#include "base/json_record.hpp"

#include <limits>

#include "base/text.hpp"

namespace trainyard {

void JsonMemberWriter::put(std::string_view name, Json value) {
  json_[std::string(name)] = std::move(value);
}

void JsonMemberWriter::operator()(std::string_view name, const std::string& value) {
  put(name, value);
}
void JsonMemberWriter::operator()(std::string_view name, bool value) { put(name, value); }
void JsonMemberWriter::operator()(std::string_view name, double value) { put(name, value); }
void JsonMemberWriter::operator()(std::string_view name, int value) { put(name, value); }
void JsonMemberWriter::operator()(std::string_view name, int64_t value) { put(name, value); }
void JsonMemberWriter::operator()(std::string_view name, uint64_t value) { put(name, value); }
void JsonMemberWriter::operator()(std::string_view name, uint32_t value) { put(name, value); }
void JsonMemberWriter::operator()(std::string_view name, Instant value) {
  put(name, to_milliseconds(value));
}
void JsonMemberWriter::operator()(std::string_view name, Duration value) {
  put(name, value.count());
}
void JsonMemberWriter::operator()(std::string_view name, const std::vector<std::string>& value) {
  put(name, value);
}
void JsonMemberWriter::operator()(std::string_view name,
                                  const std::map<std::string, std::string>& value) {
  put(name, value);
}
void JsonMemberWriter::operator()(std::string_view name, const Json& value) { put(name, value); }

JsonMemberReader::JsonMemberReader(const Json& json, std::string_view record)
    : json_(json), record_(record) {
  if (!json.is_object())
    error_ = invalid(std::string(record) + " must be an object, not " + shorten(dump(json), 60));
}

const Json* JsonMemberReader::present(std::string_view name) const {
  if (error_) return nullptr;
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void JsonMemberReader::fail(std::string_view name, std::string_view wanted) {
  if (!error_)
    error_ =
        invalid(std::string(record_) + "." + std::string(name) + " must be " + std::string(wanted) +
                ", not " + shorten(dump(json_.value(std::string(name), Json())), 60));
}

void JsonMemberReader::keep(std::string_view name, Error error) {
  if (!error_) error_ = std::move(error).in(std::string(record_) + "." + std::string(name));
}

void JsonMemberReader::operator()(std::string_view name, std::string& value) {
  const Json* found = present(name);
  if (!found) return;
  if (!found->is_string()) return fail(name, "a string");
  value = found->get<std::string>();
}

void JsonMemberReader::operator()(std::string_view name, bool& value) {
  const Json* found = present(name);
  if (!found) return;
  if (!found->is_boolean()) return fail(name, "true or false");
  value = found->get<bool>();
}

void JsonMemberReader::operator()(std::string_view name, double& value) {
  const Json* found = present(name);
  if (!found) return;
  if (!found->is_number()) return fail(name, "a number");
  value = found->get<double>();
}

void JsonMemberReader::operator()(std::string_view name, int64_t& value) {
  const Json* found = present(name);
  if (!found) return;
  if (!found->is_number_integer()) return fail(name, "a whole number");
  if (found->is_number_unsigned() &&
      found->get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()))
    return fail(name, "below 2^63");
  value = found->get<int64_t>();
}

void JsonMemberReader::operator()(std::string_view name, uint64_t& value) {
  const Json* found = present(name);
  if (!found) return;
  if (!found->is_number_integer() || (!found->is_number_unsigned() && found->get<int64_t>() < 0))
    return fail(name, "a whole number that is not negative");
  value = found->get<uint64_t>();
}

void JsonMemberReader::operator()(std::string_view name, uint32_t& value) {
  uint64_t wide = value;
  (*this)(name, wide);
  if (error_) return;
  if (wide > std::numeric_limits<uint32_t>::max()) return fail(name, "below 2^32");
  value = uint32_t(wide);
}

void JsonMemberReader::operator()(std::string_view name, int& value) {
  int64_t wide = value;
  (*this)(name, wide);
  if (error_) return;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    return fail(name, "a 32 bit number");
  value = int(wide);
}

void JsonMemberReader::operator()(std::string_view name, Instant& value) {
  int64_t milliseconds = to_milliseconds(value);
  (*this)(name, milliseconds);
  if (!error_) value = from_milliseconds(milliseconds);
}

void JsonMemberReader::operator()(std::string_view name, Duration& value) {
  int64_t milliseconds = value.count();
  (*this)(name, milliseconds);
  if (!error_) value = Duration{milliseconds};
}

void JsonMemberReader::operator()(std::string_view name, std::vector<std::string>& value) {
  const Json* found = present(name);
  if (!found) return;
  if (!found->is_array()) return fail(name, "a list of strings");
  std::vector<std::string> strings;
  for (const Json& each : *found) {
    if (!each.is_string()) return fail(name, "a list of strings");
    strings.push_back(each.get<std::string>());
  }
  value = std::move(strings);
}

void JsonMemberReader::operator()(std::string_view name,
                                  std::map<std::string, std::string>& value) {
  const Json* found = present(name);
  if (!found) return;
  if (!found->is_object()) return fail(name, "an object of strings");
  std::map<std::string, std::string> strings;
  for (const auto& [key, each] : found->items()) {
    if (!each.is_string()) return fail(name, "an object of strings");
    strings.emplace(key, each.get<std::string>());
  }
  value = std::move(strings);
}

void JsonMemberReader::operator()(std::string_view name, Json& value) {
  if (const Json* found = present(name)) value = *found;
}

Result<void> JsonMemberReader::result() && {
  if (error_) return *std::move(error_);
  return {};
}

}  // namespace trainyard
