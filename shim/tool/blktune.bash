# bash completion for blktune(1)                              -*- shell-script -*-

_blktune()
{
	local cur prev words cword split
	_init_completion -s -n : || return

	# The options end at the first word that is none of them, nor the value of one.
	local i values='mode min block read-block write-block hold depth memory direct-min hot sync only skip programs skip-programs blksize engine rate'
	local probing=
	for ((i = 1; i < cword; i++)); do
		case ${words[i]} in
		--probe | --summary) probing=1 ;;
		--)
			((i++))
			break
			;;
		--*=*) ;;
		--*) [[ " $values " == *" ${words[i]#--} "* ]] && ((i++)) ;;
		-?*) ;;
		*) break ;;
		esac
	done
	if [[ $probing && $cur != -* ]]; then
		_filedir
		return
	fi
	if ((i < cword)) || [[ $prev == -- ]]; then
		_command_offset "$i"
		return
	fi

	case $prev in
	--mode) COMPREPLY=($(compgen -W 'direct dontcache buffered observe' -- "$cur")) ;;
	--hold) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")) ;;
	--hot) COMPREPLY=($(compgen -W 'direct cache' -- "$cur")) ;;
	--sync) COMPREPLY=($(compgen -W 'close off' -- "$cur")) ;;
	--engine) COMPREPLY=($(compgen -W 'auto uring aio sync' -- "$cur")) ;;
	--report) [[ $split == true ]] && _filedir ;;
	--min | --block | --read-block | --write-block | --blksize)
		COMPREPLY=($(compgen -W '4K 64K 128K 256K 1M 4M 16M' -- "$cur"))
		;;
	--stdio | --progress) [[ $split == true ]] && COMPREPLY=($(compgen -W 'on off' -- "$cur")) ;;
	--rate | --memory | --direct-min) COMPREPLY=($(compgen -W '1M 16M 64M 256M 1G' -- "$cur")) ;;
	--only | --skip) _filedir ;;
	--programs | --skip-programs) COMPREPLY=($(compgen -c -- "$cur")) ;;
	esac
	if [[ $split == true ]] || ((i > cword)); then
		return
	fi
	if [[ $cur != -* ]]; then
		_command_offset "$i"
		return
	fi

	COMPREPLY=($(compgen -W '--off --mode= --min= --block= --read-block= --write-block= --hold=
		--depth= --memory= --direct-min= --hot= --sync= --only= --skip=
		--programs= --skip-programs= --blksize= --engine= --report --stdio --rate=
		--progress --quiet --probe --summary --show-config --help --version -r -p -q -h -V' -- "$cur"))
	[[ ${COMPREPLY-} == *= ]] && compopt -o nospace
} &&
	complete -F _blktune blktune
