module example.com/a

go 1.21

require (
	example.com/b v1.0.0 // indirect
)
replace example.com/b => ../b
