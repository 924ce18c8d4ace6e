-- Lets tshark read UD and RD datagrams. Both begin with a CRC32C, 'W' and a version; behind
-- six bytes of UD, and 28 of an RD packet that carries data, stands a DDP segment as it is in
-- MPA, so Wireshark's own dissector for DDP and RDMAP does the rest. docs/rd.md draws RD.
local ddp = Dissector.get("iwarp_ddp_rdmap")

local weft = Proto("weft_ud", "Weft datagram")
local f_crc = ProtoField.uint32("weft_ud.crc", "CRC32C", base.HEX)
local f_version = ProtoField.uint8("weft_ud.version", "Version")
weft.fields = { f_crc, f_version }

local function unreliable(tvb, pinfo, tree)
	local top = tree:add(weft, tvb(0, 6))
	top:add_le(f_crc, tvb(0, 4))
	top:add(f_version, tvb(5, 1))
	ddp:call(tvb(6):tvb(), pinfo, tree)
end

local types = { "INIT", "CHALLENGE", "ACCEPT", "REFUSE", "DATA", "ACK", "NAK", "RESET", "PROBE",
	"BYE" }
local DATA, ACK, NAK = 5, 6, 7
local reasons = { "receiver not ready", "access", "invalid", "operation" }

local weft_rd = Proto("weft_rd", "Weft reliable datagram")
local rd = {
	crc = ProtoField.uint32("weft_rd.crc", "CRC32C", base.HEX),
	version = ProtoField.uint8("weft_rd.version", "Version", base.DEC, nil, 0xf0),
	type = ProtoField.uint8("weft_rd.type", "Type", base.DEC, types, 0x0f),
	response = ProtoField.bool("weft_rd.response", "Response (lane 1)", 8, nil, 0x01),
	skip = ProtoField.bool("weft_rd.skip", "Skip", 8, nil, 0x02),
	ask = ProtoField.bool("weft_rd.ask", "Ask", 8, nil, 0x04),
	count = ProtoField.uint8("weft_rd.count", "Words of the bitmap"),
	id = ProtoField.uint64("weft_rd.id", "Id", base.HEX),
	psn = ProtoField.uint32("weft_rd.psn", "PSN"),
	ack0 = ProtoField.uint32("weft_rd.ack0", "Expects in lane 0"),
	ack1 = ProtoField.uint32("weft_rd.ack1", "Expects in lane 1"),
	word = ProtoField.uint64("weft_rd.sack", "Has arrived", base.HEX),
	reason = ProtoField.uint8("weft_rd.reason", "Reason", base.DEC, reasons),
	arg = ProtoField.uint8("weft_rd.arg", "Argument"),
	life = ProtoField.uint64("weft_rd.hello.life", "Life", base.HEX),
	hello_id = ProtoField.uint64("weft_rd.hello.id", "Id for the way back", base.HEX),
	cookie = ProtoField.uint64("weft_rd.hello.cookie", "Cookie, or reason", base.HEX),
	src_qpn = ProtoField.uint32("weft_rd.hello.src_qpn", "Source queue pair", base.HEX),
	dst_qpn = ProtoField.uint32("weft_rd.hello.dst_qpn", "Destination queue pair", base.HEX),
	qkey = ProtoField.uint32("weft_rd.hello.qkey", "Q_Key", base.HEX),
	mtu = ProtoField.uint16("weft_rd.hello.mtu", "MTU"),
	room = ProtoField.uint32("weft_rd.hello.room", "Room"),
}
for _, field in pairs(rd) do
	table.insert(weft_rd.fields, field)
end

local function hello(tvb, tree)
	tree:add(rd.life, tvb(28, 8))
	tree:add(rd.hello_id, tvb(36, 8))
	tree:add(rd.cookie, tvb(44, 8))
	tree:add(rd.src_qpn, tvb(52, 4))
	tree:add(rd.dst_qpn, tvb(56, 4))
	tree:add(rd.qkey, tvb(60, 4))
	tree:add(rd.mtu, tvb(64, 2))
	tree:add(rd.room, tvb(68, 4))
end

local function header(tvb, tree)
	tree:add_le(rd.crc, tvb(0, 4))
	tree:add(rd.version, tvb(5, 1))
	tree:add(rd.type, tvb(5, 1))
	tree:add(rd.response, tvb(6, 1))
	tree:add(rd.skip, tvb(6, 1))
	tree:add(rd.ask, tvb(6, 1))
	tree:add(rd.count, tvb(7, 1))
	tree:add(rd.id, tvb(8, 8))
	tree:add(rd.psn, tvb(16, 4))
	tree:add(rd.ack0, tvb(20, 4))
	tree:add(rd.ack1, tvb(24, 4))
end

local function reliable(tvb, pinfo, tree)
	local kind, body = tvb(5, 1):bitfield(4, 4), tvb:len() - 28
	local top = tree:add(weft_rd, tvb(0, kind == DATA and 28 or tvb:len()))
	top:append_text(", " .. (types[kind] or "unknown"))
	header(tvb, top)
	if kind < DATA and body == 48 then
		hello(tvb, top)
	elseif kind == ACK then
		for at = 28, tvb:len() - 8, 8 do
			top:add(rd.word, tvb(at, 8))
		end
	elseif kind == NAK and body == 4 then
		top:add(rd.reason, tvb(28, 1))
		top:add(rd.arg, tvb(29, 1))
	elseif kind == DATA and body > 0 then
		ddp:call(tvb(28):tvb(), pinfo, tree)
	end
end

local function heuristic(tvb, pinfo, tree)
	if tvb:len() < 24 or tvb(4, 1):uint() ~= 0x57 then
		return false
	end
	if tvb(5, 1):bitfield(0, 4) ~= 2 then
		unreliable(tvb, pinfo, tree)
	elseif tvb:len() >= 28 then
		reliable(tvb, pinfo, tree)
	else
		return false
	end
	return true
end
weft:register_heuristic("udp", heuristic)
