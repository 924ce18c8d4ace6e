-- Lets tshark read UD datagrams: behind six bytes (CRC32C, 'W', version) stands a DDP
-- segment as it is in MPA, so Wireshark's own dissector for DDP and RDMAP does the rest.
local weft = Proto("weft_ud", "Weft datagram")
local f_crc = ProtoField.uint32("weft_ud.crc", "CRC32C", base.HEX)
local f_version = ProtoField.uint8("weft_ud.version", "Version")
weft.fields = { f_crc, f_version }
local ddp = Dissector.get("iwarp_ddp_rdmap")

local function heuristic(tvb, pinfo, tree)
	if tvb:len() < 24 or tvb(4, 1):uint() ~= 0x57 then
		return false
	end
	local top = tree:add(weft, tvb(0, 6))
	top:add_le(f_crc, tvb(0, 4))
	top:add(f_version, tvb(5, 1))
	ddp:call(tvb(6):tvb(), pinfo, tree)
	return true
end
weft:register_heuristic("udp", heuristic)
