-- SPDX-License-Identifier: BSD-3-Clause
-- Dissects SLMP in Wireshark and tshark: plain packets at port 9330 (at other ports by "Decode
-- As"), and packets of sessions at any port, which are recognised by their checksum, or, with a job
-- key, by their length. docs/slmp.md has the formats of packets.
--
--     tshark -X lua_script:slmp.lua ...        or put this file into Wireshark's plugins

local slmp = Proto("slmp", "sPIN lightweight messaging protocol")

local KINDS = {
    [1] = "WELCOME", [2] = "OPEN", [3] = "OPENED", [4] = "DATA", [5] = "ACK", [6] = "RESET",
    [7] = "HELLO", [8] = "LEAVE"
}
local HEADER, COVER, BLANK, TAGGED, PIECE = 10, 1, 2, 4, 8
-- By kind of packet: bytes before the payload, without ranges, piece and tag.
local LENGTH = {[1] = 34, [2] = 42, [3] = 42, [4] = 44, [5] = 44, [6] = 30, [7] = 18,
                [8] = 30}
-- By kind of packet: bytes that a tag (the MAC) adds.
local TAG = {[1] = 32, [2] = 32, [3] = 32, [4] = 24, [5] = 24, [6] = 48, [7] = 32, [8] = 24}
local STATUS = {[0] = "bad", [1] = "good", [2] = "a tag is in its place"}

local f = {
    flags = ProtoField.uint16("slmp.flags", "Flags", base.HEX),
    eom = ProtoField.bool("slmp.flags.eom", "End of message", 16, nil, 0x8000),
    syn = ProtoField.bool("slmp.flags.syn", "To be acknowledged", 16, nil, 0x4000),
    ack = ProtoField.bool("slmp.flags.ack", "Acknowledgement", 16, nil, 0x2000),
    ver = ProtoField.bool("slmp.flags.ver", "Of a session", 16, nil, 0x1000),
    id = ProtoField.uint32("slmp.id", "Message id"),
    offset = ProtoField.uint32("slmp.offset", "Offset"),
    kind = ProtoField.uint8("slmp.kind", "Kind", base.DEC, KINDS),
    version = ProtoField.uint8("slmp.version", "Version"),
    version_max = ProtoField.uint8("slmp.version_max", "Highest version"),
    channel = ProtoField.uint8("slmp.channel", "Channel"),
    ranges = ProtoField.uint8("slmp.ranges", "Ranges"),
    bits = ProtoField.uint8("slmp.bits", "Bits", base.HEX),
    cover = ProtoField.bool("slmp.bits.cover", "Checksum covers the payload", 8, nil, COVER),
    blank = ProtoField.bool("slmp.bits.blank", "Zeros for bytes that could not be read", 8, nil, BLANK),
    tagged = ProtoField.bool("slmp.bits.tagged", "Tag of a job key", 8, nil, TAGGED),
    piece = ProtoField.bool("slmp.bits.piece", "Piece of a packet", 8, nil, PIECE),
    checksum = ProtoField.uint32("slmp.checksum", "Checksum", base.HEX),
    status = ProtoField.uint8("slmp.checksum.status", "Checksum status", base.DEC, STATUS),
    nonce = ProtoField.uint64("slmp.nonce", "Nonce", base.HEX),
    incarnation = ProtoField.uint64("slmp.incarnation", "Incarnation", base.HEX),
    token = ProtoField.uint32("slmp.token", "Token", base.HEX),
    packet_size = ProtoField.uint16("slmp.packet_size", "Longest packet"),
    window = ProtoField.uint16("slmp.window", "Window"),
    sequence = ProtoField.uint32("slmp.sequence", "Packet number"),
    cumulative = ProtoField.uint32("slmp.cumulative", "All have come below"),
    stamp = ProtoField.uint32("slmp.stamp", "Stamp (us)"),
    echo = ProtoField.uint32("slmp.echo", "Echo (us)"),
    length = ProtoField.uint32("slmp.length", "Length of the message"),
    first = ProtoField.uint32("slmp.range.first", "Have come from"),
    last = ProtoField.uint32("slmp.range.end", "to before"),
    piece_at = ProtoField.uint16("slmp.piece.at", "Place in the packet"),
    piece_of = ProtoField.uint16("slmp.piece.of", "Bytes of the packet"),
    number = ProtoField.uint64("slmp.number", "Number", base.DEC),
    drawn = ProtoField.uint64("slmp.drawn", "Drawn by the initiator", base.HEX),
    to = ProtoField.ipv4("slmp.to", "Sent to"),
    to_port = ProtoField.uint16("slmp.to_port", "at port"),
    from = ProtoField.ipv4("slmp.from", "Sent from"),
    from_port = ProtoField.uint16("slmp.from_port", "from port"),
    answers = ProtoField.uint64("slmp.answers", "Beginning of the tag that it answers", base.HEX),
    tag = ProtoField.bytes("slmp.tag", "Tag"),
    payload = ProtoField.bytes("slmp.payload", "Payload")
}
slmp.fields = f

local malformed = ProtoExpert.new("slmp.malformed", "Malformed", expert.group.MALFORMED,
                                  expert.severity.ERROR)
local corrupt = ProtoExpert.new("slmp.corrupt", "Wrong checksum", expert.group.CHECKSUM,
                                expert.severity.WARN)
slmp.experts = {malformed, corrupt}

-- ---- CRC-32C ----

local crc_table = {}
for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
        c = bit.band(c, 1) == 1 and bit.bxor(bit.rshift(c, 1), 0x82f63b78) or bit.rshift(c, 1)
    end
    crc_table[i] = c
end

-- Computes the checksum of `length` bytes; bytes 14 to 17, which hold it, count as zeros.
local function crc(buffer, length)
    local bytes, c = buffer:bytes(0, length), bit.bnot(0)
    for i = 0, length - 1 do
        local b = (i >= 14 and i < 18) and 0 or bytes:get_index(i)
        c = bit.bxor(crc_table[bit.band(bit.bxor(c, b), 255)], bit.rshift(c, 8))
    end
    return bit.tobit(bit.bnot(c))
end

-- ---- Recognising packets ----

local function is_session(buffer)
    return buffer:len() > HEADER and bit.band(buffer(0, 2):uint(), 0x1000) ~= 0
end

-- Returns the number of bytes before the payload; nil if no packet of a session begins so.
local function fixed(buffer)
    local kind = buffer:len() >= 18 and buffer(HEADER, 1):uint() or 0
    local length = LENGTH[kind]
    if not length then
        return nil
    end
    local bits, data = buffer(13, 1):uint(), kind == 4 or kind == 5
    local tagged = bit.band(bits, TAGGED) ~= 0
    if data then
        length = length + 4 * buffer(12, 1):uint()
    end
    if bit.band(bits, PIECE) ~= 0 then
        length = length + 4
    end
    if tagged then
        length = length + TAG[kind]
    elseif kind >= 7 then
        return nil
    end
    if length > buffer:len() or (kind ~= 4 and length ~= buffer:len()) then
        return nil
    end
    return length
end

local function checksum_is_right(buffer, length)
    local covers = bit.band(buffer(13, 1):uint(), COVER) ~= 0
    return crc(buffer, covers and buffer:len() or length) == bit.tobit(buffer(14, 4):uint())
end

-- ---- The tree ----

local function add_checksum(buffer, tree, length)
    local item = tree:add(f.checksum, buffer(14, 4))
    local status = 2
    if bit.band(buffer(13, 1):uint(), TAGGED) == 0 then
        status = checksum_is_right(buffer, length) and 1 or 0
    end
    tree:add(f.status, buffer(14, 4), status):set_generated()
    if status == 0 then
        item:add_proto_expert_info(corrupt)
    end
end

local function add_tag(buffer, tree, length, kind)
    local at, outside = length - TAG[kind], TAG[kind] > 24
    tree:add((kind == 6 or not outside) and f.number or f.drawn, buffer(at, 8))
    if outside then
        tree:add(f.to, buffer(at + 8, 4))
        tree:add(f.to_port, buffer(at + 12, 2))
    end
    if kind == 6 then
        tree:add(f.from, buffer(at + 16, 4))
        tree:add(f.from_port, buffer(at + 20, 2))
        tree:add(f.answers, buffer(at + 24, 8))
    end
    tree:add(f.tag, buffer(length - 16, 16))
end

local function add_session(buffer, tree, kind)
    tree:add(f.channel, buffer(11, 1))
    tree:add(f.ranges, buffer(12, 1))
    tree:add(f.token, buffer(18, 4))
    tree:add(f.sequence, buffer(22, 4))
    tree:add(f.cumulative, buffer(26, 4))
    tree:add(f.window, buffer(30, 2))
    tree:add(f.stamp, buffer(32, 4))
    tree:add(f.echo, buffer(36, 4))
    tree:add(f.length, buffer(40, 4))
    local at, cumulative = 44, buffer(26, 4):uint()
    for _ = 1, buffer(12, 1):uint() do
        tree:add(f.first, buffer(at, 2), (cumulative + buffer(at, 2):uint()) % 2 ^ 32)
        tree:add(f.last, buffer(at + 2, 2), (cumulative + buffer(at + 2, 2):uint()) % 2 ^ 32)
        at = at + 4
    end
    if bit.band(buffer(13, 1):uint(), PIECE) ~= 0 then
        tree:add(f.piece_at, buffer(at, 2))
        tree:add(f.piece_of, buffer(at + 2, 2))
    end
end

local function add_greeting(buffer, tree, kind)
    if kind == 6 or kind == 8 then
        tree:add(f.token, buffer(18, 4))
        tree:add(f.incarnation, buffer(22, 8))
        return
    end
    tree:add(f.version, buffer(11, 1))
    if kind ~= 7 then
        if kind == 1 then
            tree:add(f.version_max, buffer(12, 1))
        end
        tree:add(f.nonce, buffer(18, 8))
        tree:add(f.incarnation, buffer(26, 8))
        if kind ~= 1 then
            tree:add(f.token, buffer(34, 4))
            tree:add(f.packet_size, buffer(38, 2))
            tree:add(f.window, buffer(40, 2))
        end
    end
end

-- Adds the fields behind the first ten bytes of a packet of a session to the tree; returns the text
-- for the packet list.
local function add_rest(buffer, tree, info)
    local length = fixed(buffer)
    if not length then
        tree:add_proto_expert_info(malformed)
        return "malformed"
    end
    local kind, bits = buffer(HEADER, 1):uint(), buffer(13, 1):uint()
    local data = kind == 4 or kind == 5
    tree:add(f.kind, buffer(HEADER, 1))
    local flags = tree:add(f.bits, buffer(13, 1))
    flags:add(f.cover, buffer(13, 1))
    flags:add(f.blank, buffer(13, 1))
    flags:add(f.tagged, buffer(13, 1))
    flags:add(f.piece, buffer(13, 1))
    add_checksum(buffer, tree, length)
    if data then
        add_session(buffer, tree, kind)
    else
        add_greeting(buffer, tree, kind)
    end
    if bit.band(bits, TAGGED) ~= 0 then
        add_tag(buffer, tree, length, kind)
    end
    if length < buffer:len() then
        tree:add(f.payload, buffer(length))
    end
    if kind == 4 then
        return string.format("DATA #%d message %d offset %d", buffer(22, 4):uint(),
                             buffer(2, 4):uint(), buffer(6, 4):uint())
    elseif kind == 5 then
        return string.format("ACK below #%d", buffer(26, 4):uint())
    end
    return KINDS[kind]
end

local function plain_words(buffer)
    local flags = buffer(0, 2):uint()
    if bit.band(flags, 0x2000) ~= 0 then
        return string.format("plain ACK message %d offset %d", buffer(2, 4):uint(),
                             buffer(6, 4):uint())
    elseif bit.band(flags, 0x1000) ~= 0 then
        return "hello"
    end
    return string.format("plain message %d offset %d", buffer(2, 4):uint(), buffer(6, 4):uint())
end

function slmp.dissector(buffer, pinfo, root)
    if buffer:len() < HEADER then
        return 0
    end
    local tree = root:add(slmp, buffer())
    local flags = tree:add(f.flags, buffer(0, 2))
    for _, field in ipairs({f.eom, f.syn, f.ack, f.ver}) do
        flags:add(field, buffer(0, 2))
    end
    tree:add(f.id, buffer(2, 4))
    tree:add(f.offset, buffer(6, 4))
    local words
    if is_session(buffer) then
        words = add_rest(buffer, tree)
    else
        words = plain_words(buffer)
        if buffer:len() > HEADER then
            tree:add(f.payload, buffer(HEADER))
        end
    end
    pinfo.cols.protocol = "SLMP"
    pinfo.cols.info = words
    tree:append_text(", " .. words)
    return buffer:len()
end

DissectorTable.get("udp.port"):add(9330, slmp)

-- At other ports a packet is only taken if it certainly belongs to a session.
slmp:register_heuristic("udp", function(buffer, pinfo, root)
    if not is_session(buffer) or bit.band(buffer(0, 2):uint(), 0x0fff) ~= 0 then
        return false
    end
    local length = fixed(buffer)
    if not length then
        return false
    end
    local tagged = bit.band(buffer(13, 1):uint(), TAGGED) ~= 0
    if (tagged and buffer(14, 4):uint() ~= 0) or
       (not tagged and not checksum_is_right(buffer, length)) then
        return false
    end
    slmp.dissector(buffer, pinfo, root)
    return true
end)
