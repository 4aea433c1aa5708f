#include "containers/oci_image.hpp"

#include <limits>
#include <optional>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::containers {
namespace {

constexpr size_t kEntriesMax = 4096;  // limit of a list or table in a document
constexpr const char* kTagAnnotation = "org.opencontainers.image.ref.name";

bool is_digest(std::string_view text) {
  return text.starts_with("sha256:") && text.size() == 7 + 64 &&
         text.find_first_not_of("0123456789abcdef", 7) == std::string_view::npos;
}

Result<Json> parse_document(std::string_view text, const char* what) {
  if (text.size() > kImageDocumentBytesMax)
    return invalid(std::string(what) + " exceeds " + human_bytes(kImageDocumentBytesMax));
  auto json = TRY(parse_json(text).in(what));
  if (!json.is_object())
    return invalid("invalid document: " + std::string(what) + " must be an object");
  return json;
}

// Returns the member; null if it is missing, since documents of some tools omit unused members.
const Json& member(const Json& object, const char* name) {
  static const Json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

Result<ImageReference> read_reference(const Json& json, const char* what) {
  if (!json.is_object())
    return invalid("invalid document: " + std::string(what) + " must be an object");
  ImageReference reference{text_of(member(json, "digest")), text_of(member(json, "mediaType"))};
  if (!is_digest(reference.digest))
    return invalid("invalid document: " + std::string(what) + " has no sha256 digest");
  if (const Json& size = member(json, "size"); size.is_number_unsigned())
    reference.bytes = size.get<uint64_t>();
  return reference;
}

Result<std::vector<std::string>> read_texts(const Json& json, const char* what) {
  std::vector<std::string> texts;
  if (json.is_null()) return texts;
  if (!json.is_array() || json.size() > kEntriesMax)
    return invalid(std::string("invalid image: its ") + what + " must be a list");
  for (const auto& each : json) {
    if (!each.is_string())
      return invalid(std::string("invalid image: its ") + what + " must contain strings only");
    texts.push_back(each.get<std::string>());
    if (texts.back().find('\0') != std::string::npos)
      return invalid(std::string("invalid image: its ") + what + " has an entry with a zero byte");
  }
  return texts;
}

}  // namespace

std::vector<std::string> command_line(const std::vector<std::string>& image_entrypoint,
                                      const std::vector<std::string>& entrypoint,
                                      const std::vector<std::string>& arguments) {
  std::vector<std::string> words = entrypoint.empty() ? image_entrypoint : entrypoint;
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (entrypoint.empty() && arguments.empty()) words.push_back("train");
  return words;
}

Result<ImageReference> find_in_index(std::string_view index, std::string_view tag) {
  const Json json = TRY(parse_document(index, "index.json"));
  const Json& manifests = member(json, "manifests");
  if (!manifests.is_array() || manifests.size() > kEntriesMax)
    return invalid("invalid index.json: no list of manifests");
  std::string known;
  const Json* only = nullptr;
  for (const auto& each : manifests) {
    if (!each.is_object()) continue;
    const Json& annotations = member(each, "annotations");
    const std::string name =
        annotations.is_object() ? text_of(member(annotations, kTagAnnotation)) : "";
    if (!tag.empty() && name == tag) return read_reference(each, "the manifest's entry");
    known += (known.empty() ? "" : ", ") + name;
    only = &each;
  }
  if (tag.empty() && manifests.size() == 1 && only)
    return read_reference(*only, "the manifest's entry");
  return not_found("unknown image '" + shorten(tag, 100) +
                   "'; it has: " + shorten(to_utf8(known), 300));
}

Result<ImageDocument> read_manifest(std::string_view manifest, std::string_view architecture) {
  const Json json = TRY(parse_document(manifest, "the image's manifest"));
  const Json& manifests = member(json, "manifests");
  if (manifests.is_null()) {
    auto config = TRY(read_reference(member(json, "config"), "the manifest's config"));
    ImageDocument document{false, std::move(config)};
    const Json& layers = member(json, "layers");
    if (!layers.is_null() && (!layers.is_array() || layers.size() > kEntriesMax))
      return invalid("invalid image manifest: no list of layers");
    for (const auto& each : layers)
      document.layers.push_back(TRY(read_reference(each, "the manifest's layer")));
    return document;
  }
  if (!manifests.is_array() || manifests.size() > kEntriesMax)
    return invalid("invalid image index: no list of manifests");
  for (const auto& each : manifests) {
    if (!each.is_object()) continue;
    const Json& platform = member(each, "platform");
    if (platform.is_object() && text_of(member(platform, "os")) == "linux" &&
        text_of(member(platform, "architecture")) == architecture) {
      auto entry = TRY(read_reference(each, "the index's entry"));
      return ImageDocument{true, std::move(entry)};
    }
  }
  return not_found("the image has no manifest for linux/" + std::string(architecture));
}

Result<ImageConfig> read_image_config(std::string_view config) {
  const Json json = TRY(parse_document(config, "the image's config"));
  ImageConfig read;
  const Json& inner = member(json, "config");
  if (inner.is_null()) return read;
  if (!inner.is_object()) return invalid("invalid image config: it must be an object");
  read.entrypoint = TRY(read_texts(member(inner, "Entrypoint"), "entrypoint"));
  read.command = TRY(read_texts(member(inner, "Cmd"), "command"));
  for (const auto& line : TRY(read_texts(member(inner, "Env"), "environment"))) {
    const size_t equals = line.find('=');
    if (equals == 0 || equals == std::string::npos)
      return invalid("invalid image config: an environment entry has no name");
    read.environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  read.user = text_of(member(inner, "User"));
  const std::string directory = text_of(member(inner, "WorkingDir"));
  if (directory.empty()) return read;
  // Normalizes the path: "/a/../b/" becomes "/b", and a relative path starts at the root.
  std::vector<std::string_view> parts;
  for (const auto part : split(directory, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..")
      parts.push_back(part);
    else if (!parts.empty())
      parts.pop_back();
  }
  std::string clean;
  for (const auto part : parts) clean.append("/").append(part);
  if (clean.find('\0') != std::string::npos)
    return invalid("invalid image config: the working directory has a zero byte");
  if (!clean.empty()) read.working_directory = clean;
  return read;
}

Result<UserIds> find_user(std::string_view user, std::string_view passwd, std::string_view group) {
  if (user.empty()) return UserIds{};
  const auto as_id = [](std::string_view text) -> std::optional<uint32_t> {
    const auto number = parse_int(text);
    if (!number || *number < 0 || *number >= std::numeric_limits<uint32_t>::max()) return {};
    return uint32_t(*number);
  };
  // Returns the fields of the line "NAME:x:ID:.." whose field `place` is `wanted`.
  const auto look_up = [](std::string_view text, std::string_view wanted,
                          size_t place) -> std::optional<std::vector<std::string_view>> {
    for (const auto line : split(text, '\n')) {
      auto members = split(line, ':');
      if (members.size() >= 4 && members[place] == wanted) return members;
    }
    return {};
  };
  const size_t colon = user.find(':');
  const std::string_view name = user.substr(0, colon);
  UserIds ids;
  const auto number = as_id(name);
  if (const auto entry = look_up(passwd, name, number ? 2 : 0)) {
    const auto user_id = as_id((*entry)[2]), group_id = as_id((*entry)[3]);
    if (!user_id || !group_id)
      return invalid("invalid /etc/passwd of the image: no numbers for the user '" +
                     shorten(name, 60) + "'");
    ids = {*user_id, *group_id};
  } else if (number) {
    ids.user = *number;
  } else {
    return invalid("unknown user '" + shorten(name, 60) + "': not in the image's /etc/passwd");
  }
  if (colon == std::string_view::npos) return ids;
  const std::string_view group_name = user.substr(colon + 1);
  if (const auto id = as_id(group_name)) {
    ids.group = *id;
  } else if (const auto entry = look_up(group, group_name, 0); entry && as_id((*entry)[2])) {
    ids.group = *as_id((*entry)[2]);
  } else {
    return invalid("unknown group '" + shorten(group_name, 60) +
                   "': not in the image's /etc/group");
  }
  return ids;
}

}  // namespace trainyard::containers
